package contestant

// What tests from outside look at.
const WatchEvery = watchEvery

var PeakUntil = peakUntil
