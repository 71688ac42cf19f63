export { connectionInUse, type ConnectionUse, watchedConnector } from './connection-use.js';
export { closeListener, listen } from './listen.js';
export { readCertificates, readClientCertificate, withAuthorities } from './pem.js';
export { proxyDispatcher, ProxyError, type RequestDispatcher } from './proxy.js';
