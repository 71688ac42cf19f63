export { withAuthorities } from './ca-certificates.js';
export { closeListener, listen } from './listen.js';
export { readCertificates, readClientCertificate } from './pem.js';
export { proxyDispatcher, ProxyError, type RequestDispatcher } from './proxy.js';
