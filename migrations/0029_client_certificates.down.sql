alter table endpoints drop column mtls_client_cert;
