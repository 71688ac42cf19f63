import http from 'node:http';
import { Socket } from 'node:net';
import { asProcess } from '@gateway/plugin';
import { getGlobalDispatcher, setGlobalDispatcher, type Dispatcher } from 'undici';
import { withAuthorities } from './pem.js';
import { proxyExceptions } from './proxy-exceptions.js';
import { openProxy, type OpenProxy } from './proxy.js';
import { checkGuarded, guardFetch } from './ssrf-guard.js';

/** The Node.js types omit the members that are patched here. */
interface ProxiedAgent extends http.Agent {
  getName(options: ConnectOptions): string;
  readonly protocol: string;
  readonly sockets: Record<string, Socket[]>;
  totalSocketCount: number;
  addRequest(request: ProxiedRequest, options: ConnectOptions): void;
  createSocket(request: ProxiedRequest, options: ConnectOptions, created: SocketCreated): void;
  removeSocket(socket: Socket, options: ConnectOptions): void;
}
type ProxiedRequest = http.ClientRequest & { _header: string | null };
type ConnectOptions = http.ClientRequestArgs & { readonly socket?: Socket };
type SocketCreated = (error: Error | null, socket?: Socket) => void;

/** AWS clients get their credentials from these. */
const METADATA = /^(169\.254\.\d+\.\d+|\[(fe80:|fd00:ec2:).*)$/i;
const METADATA_URLS = ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'AWS_EC2_METADATA_SERVICE_ENDPOINT'];

/**
 * Shorter than the SQS client's timeout of 3 s, because the client's own error would not name the
 * proxy.
 */
const CONNECT_TIMEOUT_MS = 2_500;

let proxy: OpenProxy | undefined;

/**
 * Applies to every HTTP request of this process, including those of `fetch` and of all `node:http`
 * and `node:https` agents, because a per-client option is easily forgotten. Requests to cloud
 * metadata addresses and exceptions are sent directly. Clients that open their own connections are
 * not affected; the gateway's clients use `dispatcherOf`.
 * @param delivery without a proxy, nothing changes
 * @returns a function that undoes the change
 * @throws GatewayError `tls_file`
 */
export function proxyProcess(delivery: {
  readonly proxy?: string;
  readonly no_proxy?: readonly string[];
  readonly ca_file?: string;
}): () => Promise<void> {
  const { proxy: url, no_proxy: noProxy = [], ca_file: caFile } = delivery;
  if (url === undefined) return () => Promise.resolve();
  isException = proxyExceptions(noProxy);
  patchAgents();
  guardFetch();
  const secureContext = caFile === undefined ? undefined : withAuthorities(caFile);
  const own = (proxy = openProxy({ url, secureContext, connectTimeoutMs: CONNECT_TIMEOUT_MS }));
  const before = getGlobalDispatcher();
  const dispatch: Dispatcher['dispatch'] = (request, handler) => {
    const origin = new URL(String(request.origin));
    if (isDirect(origin)) return before.dispatch(request, handler);
    checkGuarded(origin.hostname)
      .then(() => asProcess(() => own.dispatch(request, handler)))
      .catch((error: Error) => handler.onError?.(error));
    return true;
  };
  setGlobalDispatcher({ dispatch } as Dispatcher);
  return async () => {
    if (proxy === own) proxy = undefined;
    setGlobalDispatcher(before);
    await own.destroy();
  };
}

let isException: (url: URL) => boolean = () => false;

function isDirect(origin: URL): boolean {
  if (METADATA.test(origin.hostname) || isException(origin)) return true;
  return METADATA_URLS.some((name) => {
    const url = process.env[name] ?? '';
    return URL.canParse(url) && new URL(url).origin === origin.origin;
  });
}

function originOf({ protocol }: ProxiedAgent, { host: given, port }: ConnectOptions): URL {
  const host = given ?? 'localhost';
  return new URL(
    `${protocol}//${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}`,
  );
}

let isPatched = false;

/**
 * All Node.js agents connect to the proxy, tunnelling TLS and sending absolute URLs otherwise. The
 * Node.js 24 option `proxyEnv` affects only agents created with it.
 */
function patchAgents(): void {
  if (isPatched) return;
  isPatched = true;
  const agents = http.Agent.prototype as ProxiedAgent;
  const { addRequest, createSocket, createConnection } = agents;

  const createProxied = function (
    this: ProxiedAgent,
    ...[request, options, created]: Parameters<ProxiedAgent['createSocket']>
  ) {
    if (!proxy || !isProxied(this, options))
      return createSocket.call(this, request, options, created);
    // A placeholder that counts towards `maxSockets` until the connection is open.
    const opening = new Socket();
    const sockets = (this.sockets[this.getName(options)] ??= []);
    sockets.push(opening);
    this.totalSocketCount++;
    const own = proxy;
    const origin = originOf(this, options);
    const connecting = checkGuarded(origin.hostname).then(() =>
      asProcess(() => own.connect(this.protocol === 'https:' ? origin : undefined)),
    );
    connecting.then(
      (socket) => {
        sockets.splice(sockets.indexOf(opening), 1);
        this.totalSocketCount--;
        createSocket.call(this, request, { ...options, socket }, created);
      },
      (error: Error) => {
        created(error);
        // Removing the placeholder unblocks a request that waits for a socket.
        this.removeSocket(opening, options);
      },
    );
  };
  const isProxied = (agent: ProxiedAgent, options: ConnectOptions) =>
    // An agent that overrides `createSocket` has its own proxy.
    agent.createSocket === createProxied &&
    /^https?:$/.test(agent.protocol) &&
    !options.socket &&
    !options.socketPath &&
    !isDirect(originOf(agent, options));

  agents.createSocket = createProxied;
  // `node:https` agents have their own `createConnection`, which wraps the socket in TLS.
  agents.createConnection = function (options: ConnectOptions, created) {
    return options.socket ?? createConnection.call(this, options, created);
  };
  agents.addRequest = function (request, options) {
    if (proxy && this.protocol === 'http:' && isProxied(this, options))
      nameWholeUrl(request, originOf(this, options), proxy.login);
    addRequest.call(this, request, options);
  };
}

/** https://www.rfc-editor.org/rfc/rfc9112#name-absolute-form */
function nameWholeUrl(request: ProxiedRequest, { origin }: URL, login: OpenProxy['login']): void {
  request.path = origin + request.path;
  if (request._header === null) {
    for (const [name, value] of Object.entries(login)) request.setHeader(name, value);
    return;
  }
  // Headers given as an array are already serialised, so add the login to the string.
  const lines = Object.entries(login).map(([name, value]) => `${name}: ${value}\r\n`);
  request._header = request._header.replace(
    /^(\S+) \S+ (.*\r\n)/,
    (_, method, rest) => `${method} ${request.path} ${rest}${lines.join('')}`,
  );
}
