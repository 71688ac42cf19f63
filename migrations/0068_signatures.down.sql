-- They would be signed in another way than their receivers verify, or lack a header that these require.
update endpoints set status = 'inactive', status_reason = 'This version does not know its signatures or headers.'
where signatures is not null or signature_prefix is not null or headers is not null;
alter table endpoints drop column signatures, drop column signature_prefix, drop column headers;
