package patientapi

// The words that people are made of. All are invented, or too plain to belong
// to anybody.

var givenNames = [...]string{
	"Abrin", "Alvi", "Amelo", "Arven", "Belka", "Benno", "Brisa", "Caldo", "Corin", "Dalia", "Darvin", "Edria",
	"Elmo", "Emrys", "Fenna", "Florin", "Galen", "Gisla", "Hadra", "Helvi", "Ilan", "Imra", "Jarek", "Jolin",
	"Kaya", "Kelso", "Larka", "Lenno", "Lumi", "Marek", "Mirel", "Nadir", "Neva", "Odin", "Olva", "Pavla",
	"Perrin", "Quilla", "Ravi", "Rona", "Sable", "Senna", "Tarn", "Tilda", "Ulric", "Una", "Velda", "Vinko",
	"Wilma", "Wren", "Xenia", "Yarrow", "Yvo", "Zadie", "Zoran", "Orsel", "Tamsin", "Isolde", "Bram", "Cressa",
}

var familyStarts = [...]string{
	"Alder", "Ash", "Bar", "Birch", "Black", "Bram", "Carr", "Clay", "Cold", "Dell", "Dun", "Elm", "Fair", "Fal",
	"Fern", "Glen", "Gold", "Gran", "Hart", "Haw", "Hazel", "Holl", "Iron", "Kel", "Lark", "Lin", "Long", "Mar",
	"Mill", "Moor", "Nor", "Oak", "Pel", "Quin", "Rav", "Red", "Rook", "Sand", "Silver", "Stern", "Thorn", "Wald",
}

var familyEnds = [...]string{
	"acre", "beck", "borne", "bridge", "brook", "by", "cliff", "combe", "cott", "dale", "den", "field", "ford",
	"gate", "grove", "ham", "hurst", "land", "ley", "low", "mere", "mont", "more", "quist", "ridge", "sen",
	"stead", "ster", "thwaite", "ton", "vale", "wall", "wick", "win", "wood", "worth",
}

var streetNames = [...]string{
	"Amber", "Anchor", "Beacon", "Bell", "Bramble", "Canal", "Cedar", "Chalk", "Cherry", "Copper", "Ferry", "Fountain",
	"Garden", "Harbour", "Heron", "Juniper", "Kiln", "Lantern", "Linden", "Mason", "Meadow", "Orchard", "Quarry",
	"River", "Rowan", "Saddler", "Sluice", "Spring", "Tanner", "Weaver", "Weir", "Willow",
}

var streetKinds = [...]string{"Street", "Road", "Lane", "Row", "Way", "Close", "Walk", "Square"}

var cities = [...]string{
	"Ardenmouth", "Belcastle", "Brackwater", "Caldermoor", "Dunhaven", "Eastmere", "Ferrowick", "Glenharbour",
	"Hollinport", "Inverbeck", "Kestrelford", "Larchester", "Marrowdale", "Netherfall", "Oakenbridge", "Penvarrow",
	"Quillstead", "Ravensluice", "Saltmarket", "Thornaby Weir", "Underlock", "Vellmouth", "Westerpool", "Yarrowgate",
}

var genders = [...]string{"female", "male", "other", "unknown"}

var bloodTypes = [...]string{"O+", "O-", "A+", "A-", "B+", "B-", "AB+", "AB-"}

var organisations = [...]string{
	"Ardenmouth Clinic", "Beacon Street Practice", "Belcastle General", "Brackwater Infirmary", "Calder Health Centre",
	"Cedar Row Surgery", "Dunhaven Hospital", "Eastmere Family Practice", "Ferrowick Medical Centre", "Glenharbour Clinic",
	"Heron Lane Surgery", "Hollinport Infirmary", "Inverbeck Hospital", "Kestrelford Practice", "Larchester General",
	"Marrowdale Clinic", "Netherfall Health Centre", "Oakenbridge Hospital", "Penvarrow Practice", "Weir Road Surgery",
}

var insurers = [...]string{
	"Alder Mutual", "Bluestone Cover", "Cairn Health Plan", "Driftwood Assurance", "Evenkeel Mutual", "Farrow & Vale",
	"Greenway Health", "Harbour Light", "Ironbridge Cover", "Juniper Plan", "Keystone Circle", "Longmeadow Mutual",
}

const paediatrics = "paediatrics"

var specialties = [...]string{
	"general practice", "internal medicine", "cardiology", "dermatology", "endocrinology", "neurology",
	"orthopaedics", paediatrics, "psychiatry", "pulmonology", "rheumatology", "urology",
}

var allergens = [...]string{
	"penicillin", "latex", "peanuts", "shellfish", "bee venom", "pollen", "house dust", "cat hair", "iodine", "eggs",
	"milk", "strawberries",
}

var reactions = [...]string{"rash", "hives", "sneezing", "swelling", "nausea", "short breath"}

var severities = [...]string{"mild", "moderate", "severe"}
