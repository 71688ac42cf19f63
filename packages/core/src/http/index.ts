export { closeListener, listen } from './listen.js';
export { readCertificates, readClientCertificate, withAuthorities } from './pem.js';
export { proxyDispatcher, ProxyError, type RequestDispatcher } from './proxy.js';
