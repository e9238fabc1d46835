package patientapi

// condition is something that a patient may have, and what is taken for it.
type condition struct {
	text     string
	from, to int // years of age at which it begins
	remedies []remedy
}

// remedy is an invented medication and how it is taken.
type remedy struct {
	name  string
	doses []string
}

var (
	tablet  = []string{"5 mg once a day", "10 mg once a day", "20 mg once a day"}
	capsule = []string{"50 mg twice a day", "100 mg twice a day", "1 capsule when needed"}
	syrup   = []string{"5 ml twice a day", "5 ml three times a day", "10 ml when needed"}
	inhaler = []string{"1 puff twice a day", "2 puffs when needed"}
	spray   = []string{"1 spray a day", "2 sprays when needed"}
	cream   = []string{"thinly once a day", "thinly twice a day"}
)

// conditions are in the order of their codes: a new one goes to the end.
var conditions = [...]condition{
	{"raised blood pressure", 30, 90, []remedy{{"Corvexal", tablet}, {"Hepranol", tablet}}},
	{"seasonal allergy", 4, 60, []remedy{{"Nasolent", spray}, {"Rhinavec", syrup}}},
	{"lower back pain", 18, 90, []remedy{{"Albrenol", capsule}}},
	{"migraine", 12, 55, []remedy{{"Zolmetrin", capsule}}},
	{"mild asthma", 3, 60, []remedy{{"Pulmerin", inhaler}, {"Ventrasol", inhaler}}},
	{"type 2 diabetes", 30, 85, []remedy{{"Metrigan", capsule}}},
	{"iron deficiency", 1, 90, []remedy{{"Ferrovit", syrup}}},
	{"chronic sinusitis", 10, 80, []remedy{{"Nasolent", spray}}},
	{"knee arthrosis", 45, 95, []remedy{{"Albrenol", capsule}, {"Ibrelast", tablet}}},
	{"insomnia", 18, 95, []remedy{{"Dormilan", tablet}}},
	{"reflux", 18, 90, []remedy{{"Gastrolin", capsule}, {"Kelprazol", tablet}}},
	{"underactive thyroid", 18, 85, []remedy{{"Thyrovel", tablet}}},
	{"overactive thyroid", 18, 80, []remedy{{"Oxavent", tablet}}},
	{"eczema", 0, 70, []remedy{{"Xylodex", cream}}},
	{"psoriasis", 15, 75, []remedy{{"Xylodex", cream}}},
	{"gout", 30, 90, []remedy{{"Uricalm", tablet}}},
	{"anxiety", 18, 75, []remedy{{"Calmadin", tablet}, {"Quietal", tablet}}},
	{"low mood", 18, 85, []remedy{{"Sertolin", tablet}}},
	{"vitamin D deficiency", 0, 95, []remedy{{"Jovamin", syrup}}},
	{"tinnitus", 25, 90, nil},
	{"irregular heartbeat", 45, 95, []remedy{{"Hepranol", tablet}}},
	{"kidney stones", 20, 80, []remedy{{"Uricalm", tablet}}},
	{"gallstones", 25, 85, nil},
	{"frozen shoulder", 40, 75, []remedy{{"Ibrelast", tablet}}},
	{"carpal tunnel syndrome", 25, 75, nil},
	{"vertigo", 25, 95, nil},
	{"hay fever", 5, 50, []remedy{{"Rhinavec", syrup}, {"Nasolent", spray}}},
	{"high cholesterol", 35, 90, []remedy{{"Lorvastin", tablet}}},
	{"osteoporosis", 50, 95, []remedy{{"Bextavir", tablet}, {"Jovamin", syrup}}},
	{"sleep apnoea", 30, 80, nil},
	{"croup", 0, 5, []remedy{{"Pulmerin", inhaler}}},
	{"middle ear infection", 0, 10, []remedy{{"Albrenol", syrup}}},
}

// reason is why somebody comes, from that age on.
type reason struct {
	text string
	from int // years
}

var reasons = [...]reason{
	{"check-up", 0}, {"follow-up", 0}, {"vaccination", 0}, {"fever", 0}, {"skin rash", 0}, {"persistent cough", 0},
	{"blood test", 1}, {"allergy advice", 1}, {"prescription renewal", 1}, {"sprained ankle", 3}, {"headache", 4},
	{"sleep trouble", 4}, {"back pain", 14}, {"blood pressure control", 18},
}
