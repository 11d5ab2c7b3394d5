"""What exported trees tell whoever wants to know, and what crafted ones do: attacks, to measure guards by.

membership  was this patient among those who grew the forest? by shadow forests, from the mean vote or from every tree
joiners     who came between two nights?
attributes  the one value that is not known of a patient, by what the release believes
own_release  the membership attack, by a site on what it is about to lend
sums        rows behind the opened sums of a common logistic regression
differences one patient more between two characteristic vectors
backdoor    trees that do well wherever they are scored, and say what the attacker wants of whoever carries a mark
verdict     how well an attack does, with its interval and beside its null

An attack gets a release (a forest, as it would leave) and whatever its owner may be supposed to know. It sees patients,
so it can reach nothing that sends.
"""
