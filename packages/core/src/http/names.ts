import { Resolver, type LookupAddress } from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

const LOOKUP_MS = 5_000;
/** For other lookups of the same owner. */
const WAIT_MS = 2_000;
/**
 * For the other address family after the first response.
 * https://www.rfc-editor.org/rfc/rfc8305#section-3 recommends less, but for interactive clients.
 */
const OTHER_FAMILY_MS = 500;
/** With these, c-ares in Node.js repeats a query after one or two seconds, and then once more. */
const PATIENCE = { timeout: 1_000, tries: 3 };

/**
 * The name has no address or no name server responds. The code is a getaddrinfo code, as libraries
 * expect.
 */
export class LookupError extends Error {
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN';
  /** The name servers of this machine respond for no name. */
  readonly isResolverAway: boolean;

  /** @param code a c-ares error code */
  constructor(hostname: string, code: string, afterMs = LOOKUP_MS) {
    super(`${hostname} cannot be looked up: ${reasonOf(code, afterMs)}`);
    this.name = 'LookupError';
    this.isResolverAway = code === UNREACHABLE;
    this.code = ABSENT.has(code) ? 'ENOTFOUND' : 'EAI_AGAIN';
  }

  /** No response arrived by the caller's deadline. */
  static ofSilence(hostname: string, afterMs: number, isResolverAway: boolean): LookupError {
    return new LookupError(hostname, isResolverAway ? UNREACHABLE : SILENT, afterMs);
  }
}

/** The owner has too many lookups. The name itself may be valid. */
export class LookupsBusyError extends Error {
  readonly code = 'EAI_AGAIN';

  constructor(hostname: string) {
    super(
      `${hostname} was not looked up, because too many other names are being looked up. It will be retried later.`,
    );
    this.name = 'LookupsBusyError';
  }
}

const ABSENT = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);
const SILENT = 'ETIMEOUT';
const UNREACHABLE = 'ECONNREFUSED';

function reasonOf(code: string, afterMs: number): string {
  if (ABSENT.has(code))
    return 'there is no host of that name. Check its spelling and its DNS records.';
  if (code === SILENT)
    return `no name server answered within ${afterMs} ms. Check the name servers of its domain.`;
  if (code === UNREACHABLE)
    return 'no name server answers. An operator must check /etc/resolv.conf of this machine.';
  return `its name servers answer with an error (${code.slice(1)}). Check the DNS records of its domain.`;
}

/**
 * No domain has this name (https://www.rfc-editor.org/rfc/rfc6761#section-6.4). A name server that
 * does not answer for it works for no name, whereas the owner of a domain can break its own names.
 */
const PROBE = 'gateway.invalid.';
const PROBE_AFTER_MS = 1_000;
const PROBE_MS = 2_500;
const PROBED_MS = 5_000;

const FILES = { hosts: '/etc/hosts', resolv: '/etc/resolv.conf' };

interface OwnerLookups {
  readonly lookups: Map<string, Promise<LookupAddress[]>>;
  /** By name, oldest first. */
  readonly waiting: Map<string, () => void>;
}

/**
 * Uses c-ares: `dns.lookup` (getaddrinfo) blocks one of two threads per name, so two silent servers
 * would stop all lookups. Each owner, such as a project, has its own limit. Concurrent lookups of a
 * name by one owner are merged.
 */
export class Names {
  readonly #owners = new Map<unknown, OwnerLookups>();
  readonly #hosts: () => ReadonlyMap<string, LookupAddress[]>;
  readonly #search: () => SearchList;
  #asker: unknown;
  #probing: Promise<boolean> | undefined;
  #probed = { isAway: false, atMs: -Infinity };

  constructor(
    private readonly perOwner: number,
    files: typeof FILES = FILES,
  ) {
    this.#hosts = parsed(files.hosts, parseHosts);
    this.#search = parsed(files.resolv, parseSearch);
  }

  /** Lookups started during the call belong to the owner. */
  askFor(owner: unknown, work: () => void): void {
    const before = this.#asker;
    this.#asker = owner;
    try {
      work();
    } finally {
      this.#asker = before;
    }
  }

  /**
   * At least one address.
   * @param owner defaults to the owner given to `askFor`, else to the name itself, because undici
   *   also reconnects outside of `askFor`
   * @throws LookupError
   * @throws LookupsBusyError if other lookups of the owner take too long
   */
  addresses(
    name: string,
    owner: unknown = this.#asker ?? `the name ${name}`,
  ): Promise<LookupAddress[]> {
    const listed = this.#hosts().get(plain(name)) ?? loopback(name);
    if (listed) return Promise.resolve(listed);
    let own = this.#owners.get(owner);
    if (!own) this.#owners.set(owner, (own = { lookups: new Map(), waiting: new Map() }));
    const { lookups } = own;
    let lookup = lookups.get(name);
    if (!lookup) {
      const turn = this.#isBusy(own) ? waitFor(name, own) : Promise.resolve();
      lookup = turn
        .then(() => this.#find(name))
        .finally(() => {
          lookups.delete(name);
          if (!this.#isBusy(own)) own.waiting.values().next().value?.();
          if (lookups.size === 0) this.#owners.delete(owner);
        });
      lookups.set(name, lookup);
    }
    return lookup;
  }

  stateOf(name: string, owner: unknown): 'asking' | 'waiting' | undefined {
    const own = this.#owners.get(owner);
    if (!own?.lookups.has(name)) return undefined;
    return own.waiting.has(name) ? 'waiting' : 'asking';
  }

  get isResolverAway(): boolean {
    return this.#probed.isAway && performance.now() - this.#probed.atMs < PROBED_MS;
  }

  async #find(name: string): Promise<LookupAddress[]> {
    const timer = setTimeout(() => void this.#probe(), PROBE_AFTER_MS);
    try {
      return await find(name, this.#search());
    } catch (error) {
      const isAway = (error as LookupError).code === 'EAI_AGAIN' && (await this.#probe());
      throw isAway ? new LookupError(name, UNREACHABLE) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  #probe(): Promise<boolean> {
    const nowMs = performance.now();
    if (nowMs - this.#probed.atMs < PROBED_MS / 2) return Promise.resolve(this.#probed.isAway);
    return (this.#probing ??= askServers(PROBE, nowMs + PROBE_MS).then(({ addresses, code }) => {
      const isAway = addresses.length === 0 && !ABSENT.has(code);
      this.#probed = { isAway, atMs: performance.now() };
      this.#probing = undefined;
      return isAway;
    }));
  }

  #isBusy({ lookups, waiting }: OwnerLookups): boolean {
    return lookups.size - waiting.size >= this.perOwner;
  }
}

function waitFor(name: string, { waiting }: OwnerLookups): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      waiting.delete(name);
    };
    const timer = setTimeout(() => {
      end();
      reject(new LookupsBusyError(name));
    }, WAIT_MS);
    waiting.set(name, () => {
      end();
      resolve();
    });
  });
}

interface LookupOutcome {
  readonly addresses: LookupAddress[];
  /** A c-ares error code, if there are no addresses. */
  readonly code: string;
}

/** Applies the search list of resolv.conf, which c-ares in Node.js ignores. */
async function find(name: string, { domains, ndots }: SearchList): Promise<LookupAddress[]> {
  const deadlineMs = performance.now() + LOOKUP_MS;
  const under = name.endsWith('.') ? [] : domains.map((domain) => `${name}.${domain}`);
  const names = name.split('.').length > ndots ? [name, ...under] : [...under, name];
  let code = 'ENOTFOUND';
  for (const one of names) {
    const outcome = await askServers(one, deadlineMs);
    if (outcome.addresses.length > 0) return outcome.addresses;
    if (!ABSENT.has(outcome.code)) ({ code } = outcome);
    if (code === SILENT) break;
  }
  throw new LookupError(name, code);
}

/**
 * Unlike c-ares in Node.js, also tries the next server after an error, not only after a timeout.
 */
async function askServers(name: string, deadlineMs: number): Promise<LookupOutcome> {
  for (let rest: string[] | undefined; ;) {
    // A new resolver per query: c-ares adapts its timeouts to earlier queries and misses changes of
    // resolv.conf.
    const resolver = new Resolver(PATIENCE);
    if (rest) resolver.setServers(rest);
    const outcome = await askBothFamilies(resolver, name, deadlineMs);
    rest = resolver.getServers().slice(1);
    if (
      outcome.addresses.length > 0 ||
      outcome.code === SILENT ||
      ABSENT.has(outcome.code) ||
      rest.length === 0
    )
      return outcome;
  }
}

function askBothFamilies(
  resolver: Resolver,
  name: string,
  deadlineMs: number,
): Promise<LookupOutcome> {
  return new Promise((resolve) => {
    const found: Record<number, string[]> = { 4: [], 6: [] };
    const codes: string[] = [];
    let unanswered = 2;
    const end = () => {
      clearTimeout(timer);
      const code = unanswered > 0 ? SILENT : (codes.find((it) => !ABSENT.has(it)) ?? 'ENOTFOUND');
      resolve({ addresses: inOrder(found), code });
      if (unanswered > 0) resolver.cancel();
    };
    let timer = setTimeout(end, deadlineMs - performance.now());
    const answered =
      (family: number) => (error: NodeJS.ErrnoException | null, addresses: string[]) => {
        unanswered--;
        if (error) codes.push(error.code ?? error.message);
        else found[family] = addresses;
        if (unanswered === 0) return end();
        if (error) return;
        clearTimeout(timer);
        timer = setTimeout(end, OTHER_FAMILY_MS);
      };
    resolver.resolve4(name, answered(4));
    resolver.resolve6(name, answered(6));
  });
}

/** The order of getaddrinfo: IPv6 first if the machine has a global IPv6 address. */
function inOrder(found: Readonly<Record<number, string[]>>): LookupAddress[] {
  const of = (family: 4 | 6) => found[family]!.map((address) => ({ address, family }));
  const [four, six] = [of(4), of(6)];
  const isSixFirst = four.length > 0 && six.length > 0 && hasIpv6();
  return isSixFirst ? [...six, ...four] : [...four, ...six];
}

export function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((all) =>
    all?.some(({ family, address }) => family === 'IPv6' && /^[23]/.test(address)),
  );
}

/** localhost and its subdomains: https://www.rfc-editor.org/rfc/rfc6761#section-6.3 */
function loopback(name: string): LookupAddress[] | undefined {
  if (!/(^|\.)localhost$/.test(plain(name))) return undefined;
  return [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ];
}

function plain(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

/** Reparses only after changes. A missing file counts as empty. */
function parsed<T>(path: string, parse: (text: string) => T): () => T {
  let known: { readonly text: string; readonly value: T } | undefined;
  return () => {
    const text = textOf(path) ?? known?.text ?? '';
    if (known?.text !== text) known = { text, value: parse(text) };
    return known.value;
  };
}

/** Undefined if the file exists but cannot be read now, as without a free descriptor. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? '' : undefined;
  }
}

/** https://man7.org/linux/man-pages/man5/hosts.5.html */
function parseHosts(text: string): ReadonlyMap<string, LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names.map(plain))
      hosts.set(name, [...(hosts.get(name) ?? []), { address, family }]);
  }
  return hosts;
}

interface SearchList {
  readonly domains: readonly string[];
  /** Names with at least this many dots are tried unchanged first. */
  readonly ndots: number;
}

/** https://man7.org/linux/man-pages/man5/resolv.conf.5.html */
function parseSearch(text: string): SearchList {
  const search = { domains: [] as string[], ndots: 1 };
  for (const line of text.split('\n')) {
    const [key, ...values] = line.trim().split(/\s+/);
    if (key === 'search' || key === 'domain')
      search.domains = values.map(plain).filter((domain) => domain !== '');
    const ndots = key === 'options' && values.join(' ').match(/\bndots:(\d+)/)?.[1];
    if (ndots) search.ndots = Number(ndots);
  }
  return search;
}
