-- What a source says of the message of an event besides its coordinates, time and headers: JSON with key, attributes of the broker and query of the request.
-- Null if there is nothing more, and then it takes no space. A quarantined message has it for its replay.
-- plane: data
-- blocks: reads and writes of events, quarantined_messages

alter table events add column message text;
alter table quarantined_messages add column message text;
