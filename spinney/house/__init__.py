"""The nights of a house: what is approved, what is sent, what came, and what is kept of it.

nights, site_night, coordinator_night    one run at a time, from opening to result
rounds, round_messages, step_titles      a round over the exchange
channel, envelopes, encoding             sealed messages, written ahead and checked
keys, roster, renewal, joining           who takes part, and by which keys
approvals, admission, withdrawal         what people here decided
audit                                    what left this house and what came
champion                                 the model in use takes part in the choice
patients                                 what all of them may ask about patients, whose vault they can't open
"""
