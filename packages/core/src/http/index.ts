export { checkClientCertificate, type ClientCertificate } from './client-certificate.js';
export { connectionInUse, type ConnectionUse } from './connection-use.js';
export { networkOf } from './network.js';
export { LookupError, LookupsBusyError, Names } from './names.js';
export { closeListener, leaveConnections, listen } from './listen.js';
export {
  authoritiesWith,
  readCertificates,
  readClientCertificate,
  withAuthorities,
} from './pem.js';
export { proxyProcess } from './process-proxy.js';
export { addressGuard, checkHost, guardedConnector, RefusedAddressError } from './ssrf-guard.js';
export { dispatcherOf, ProxyError, type RequestDispatcher } from './proxy.js';
