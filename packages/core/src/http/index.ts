export { checkClientCertificate, type ClientCertificate } from './client-certificate.js';
export { connectionInUse, type ConnectionUse } from './connection-use.js';
export { networkOf, withinNetworks } from './network.js';
export { LookupError, LookupsBusyError, Names } from './names.js';
export { KEEP_ALIVE_MS, listen, type HttpListener } from './listen.js';
export {
  authoritiesWith,
  readCertificates,
  readClientCertificate,
  withAuthorities,
} from './pem.js';
export { proxyExceptions } from './proxy-exceptions.js';
export { proxyProcess } from './process-proxy.js';
export { guardedConnector, RefusedAddressError } from './connect-any.js';
export { addressGuard, checkHost } from './ssrf-guard.js';
export { shortageOf } from './shortage.js';
export { dispatcherOf, ProxyError, type RequestDispatcher } from './proxy.js';
