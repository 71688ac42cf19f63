drop table source_positions;
