import http from 'node:http';
import { Socket } from 'node:net';
import { asProcess } from '@gateway/plugin';
import { getGlobalDispatcher, setGlobalDispatcher, type Dispatcher } from 'undici';
import { withAuthorities } from './pem.js';
import { openProxy, type OpenProxy } from './proxy.js';
import { checkGuarded, guardFetch } from './ssrf-guard.js';

/** What Node's agents have and their types do not list. */
interface Agent {
  getName(options: Options): string;
  readonly protocol: string;
  readonly sockets: Record<string, Socket[]>;
  totalSocketCount: number;
  addRequest(request: Request, options: Options): void;
  createSocket(request: Request, options: Options, created: Created): void;
  createConnection(options: Options, created: Created): Socket | undefined;
  removeSocket(socket: Socket, options: Options): void;
}
type Request = http.ClientRequest & { _header: string | null };
interface Options {
  readonly host?: string;
  readonly port?: number | string;
  readonly socketPath?: string | null;
  readonly socket?: Socket;
}
type Created = (error: Error | null, socket?: Socket) => void;

/** Where AWS clients get the credentials of their machine, which belong to this machine and no other. */
const METADATA = /^(169\.254\.\d+\.\d+|\[(fe80:|fd00:ec2:).*)$/i;
const METADATA_URLS = ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'AWS_EC2_METADATA_SERVICE_ENDPOINT'];

/** Less than the three seconds in which the SQS client wants its connection: its own error would not name the proxy. */
const CONNECT_TIMEOUT_MS = 2_500;

let proxy: OpenProxy | undefined;

/**
 * Sends every HTTP request of this process through a proxy, whichever client makes it: `fetch`, and libraries over `node:http` and `node:https`, whose
 * agents are their own. So it is not an option of each client, which the next one would forget. Requests to the metadata addresses of a cloud stay direct.
 * Only a client that brings its own connections escapes: `dispatcherOf` is for those of the gateway.
 *
 * @param delivery the settings `delivery.*`; without a proxy nothing changes
 * @returns a function that ends this
 * @throws GatewayError `tls_file` when the file of authorities cannot be used
 */
export function proxyProcess(delivery: { readonly proxy?: string; readonly ca_file?: string }): () => Promise<void> {
  const { proxy: url, ca_file: caFile } = delivery;
  if (url === undefined) return () => Promise.resolve();
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

function isDirect(origin: URL): boolean {
  if (METADATA.test(origin.hostname)) return true;
  return METADATA_URLS.some((name) => {
    const url = process.env[name] ?? '';
    return URL.canParse(url) && new URL(url).origin === origin.origin;
  });
}

function originOf({ protocol }: Agent, { host = 'localhost', port }: Options): URL {
  return new URL(`${protocol}//${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}`);
}

let isPatched = false;

/**
 * Patches the prototype that every agent of `node:http` and `node:https` has, of whatever library: its connections are to the proxy, those for TLS through
 * tunnels, and plain requests name the whole URL. Node 24 has `proxyEnv` for this, but only for agents that are created with it.
 */
function patchAgents(): void {
  if (isPatched) return;
  isPatched = true;
  const agents = http.Agent.prototype as unknown as Agent;
  const { addRequest, createSocket, createConnection } = agents;

  const createProxied = function (this: Agent, ...[request, options, created]: Parameters<Agent['createSocket']>) {
    if (!proxy || !isProxied(this, options)) return createSocket.call(this, request, options, created);
    // Until the connection is open this counts for it, so that `maxSockets` holds.
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
        // Another request may wait for a socket.
        this.removeSocket(opening, options);
      },
    );
  };
  const isProxied = (agent: Agent, options: Options) =>
    // An agent with a `createSocket` of its own is for another proxy.
    agent.createSocket === createProxied &&
    /^https?:$/.test(agent.protocol) &&
    !options.socket &&
    !options.socketPath &&
    !isDirect(originOf(agent, options));

  agents.createSocket = createProxied;
  // `node:https` has another, which makes a TLS connection of the socket.
  agents.createConnection = function (options, created) {
    return options.socket ?? createConnection.call(this, options, created);
  };
  agents.addRequest = function (request, options) {
    if (proxy && this.protocol === 'http:' && isProxied(this, options)) nameWholeUrl(request, originOf(this, options), proxy.login);
    addRequest.call(this, request, options);
  };
}

/** https://www.rfc-editor.org/rfc/rfc9112#name-absolute-form */
function nameWholeUrl(request: Request, { origin }: URL, login: OpenProxy['login']): void {
  request.path = origin + request.path;
  if (request._header === null) {
    for (const [name, value] of Object.entries(login)) request.setHeader(name, value);
    return;
  }
  // Headers given as an array are written already.
  const lines = Object.entries(login).map(([name, value]) => `${name}: ${value}\r\n`);
  request._header = request._header.replace(
    /^(\S+) \S+ (.*\r\n)/,
    (_, method, rest) => `${method} ${request.path} ${rest}${lines.join('')}`,
  );
}
