import { clip } from './clip.js';
const SAID_MAX = 500;

/**
 * An error that a user can fix. It states what failed and where, with the field or setting to
 * change, and contains no secrets.
 */
export class PluginError extends Error {
  /** The remedy, as one imperative sentence. */
  readonly fix: string;
  /**
   * The beginning of the server's response, for the operator's health and log. Kept out of the
   * message, because users could otherwise read responses from any address.
   */
  readonly said: string | undefined;
  /** For `receive` of a push source: refuses the request with this status. */
  readonly status: 400 | 401 | undefined;
  /** For `check` of a push source: the fields of the connection to change. */
  readonly problems: readonly FieldProblem[] | undefined;

  constructor(
    message: string,
    options: {
      fix: string;
      cause?: unknown;
      said?: string | undefined;
      status?: 400 | 401;
      problems?: readonly FieldProblem[];
    },
  ) {
    super(message, { cause: options.cause });
    this.name = 'PluginError';
    this.fix = options.fix;
    this.status = options.status;
    this.problems = options.problems;
    this.said = options.said && clip(options.said, SAID_MAX);
  }
}

export interface FieldProblem {
  /** Its path in the connection, such as `verifier.secret`. */
  readonly field: string;
  /** Without its subject: `is missing`. */
  readonly sentence: string;
}

/** An error together with its causes. */
export class ErrorChain {
  /** The error and its causes, outermost first. */
  readonly errors: readonly Error[];
  /** The messages of the errors, one per line. */
  readonly messages: string;
  readonly #labels: ReadonlySet<unknown>;
  readonly #text: string;

  constructor(error: unknown) {
    const errors = new Set<Error>();
    for (let at = error; at instanceof Error && !errors.has(at); at = at.cause) errors.add(at);
    this.errors = [...errors];
    this.messages =
      errors.size > 0 ? this.errors.map(({ message }) => message).join('\n') : String(error);
    const labelled = this.errors as readonly (Error & {
      code?: unknown;
      Code?: unknown;
      type?: unknown;
    })[];
    this.#labels = new Set(
      labelled.flatMap(({ name, code, Code, type }) => [name, code, Code, type]),
    );
    this.#text = [this.messages, ...this.#labels].join('\n');
  }

  /** Whether any error has one of these names, codes or types, or matches a regular expression. */
  has(...signs: readonly (string | RegExp)[]): boolean {
    return signs.some((sign) =>
      typeof sign === 'string' ? this.#labels.has(sign) : sign.test(this.#text),
    );
  }
}

export type NetworkFault = keyof typeof NETWORK_FAULTS;

/**
 * Network faults, with the patterns that identify them and a sentence for the user. The first match
 * is reported.
 */
const NETWORK_FAULTS = {
  wrongHost: [
    [/ERR_TLS_CERT_ALTNAME_INVALID|does not match certificate/],
    'The certificate of <place> is for another host name.',
  ],
  expired: [
    [/CERT_HAS_EXPIRED|certificate has expired/],
    'The certificate of <place> has expired.',
  ],
  untrusted: [
    [/self-signed certificate|unable to (verify|get)|SELF_SIGNED|UNABLE_TO_|CERT_/i],
    'The certificate of <place> is not signed by <authority>.',
  ],
  noTls: [
    [
      'EPROTO',
      /ERR_SSL_WRONG_VERSION_NUMBER|before secure TLS connection|wrong version number|packet length too long/i,
    ],
    '<place> does not speak TLS on this port.',
  ],
  unresolved: [[/ENOTFOUND|EAI_AGAIN/], 'The host name of <place> cannot be resolved.'],
  refused: [[/ECONNREFUSED/], 'Nothing listens on <place>.'],
  silent: [
    ['TimeoutError', /Connection timeout|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/],
    '<place> does not answer.',
  ],
} as const satisfies Record<
  string,
  readonly [signs: readonly (string | RegExp)[], sentence: string]
>;

/**
 * Explains a network, proxy or TLS error. Returns undefined for other errors.
 * @param place the server as its user knows it
 * @param authority the expected signer of the server's certificate
 * @param fixes the remedy for each fault
 */
export function explainNetwork(
  chain: ErrorChain,
  {
    place,
    authority,
    fixes,
  }: { place: string; authority: string; fixes: Readonly<Record<NetworkFault, string>> },
): PluginError | undefined {
  // The proxy (`delivery.proxy`) failed, not the server.
  const proxy = chain.errors.find(({ name }) => name === 'ProxyError');
  if (proxy) {
    const fix =
      'Check delivery.proxy (--proxy, GATEWAY_PROXY), that the proxy runs, and that its rules allow this host.';
    return new PluginError(proxy.message, { fix, cause: chain.errors[0] });
  }
  // The gateway's guard rejected an address in a network that sources may not reach.
  if (chain.has('RefusedAddressError', /is in a private or reserved network/)) {
    const fix =
      'Give a public address, or let an operator allow the network with source.allowed_networks.';
    return new PluginError(`${place} is in a network that sources may not reach.`, {
      fix,
      cause: chain.errors[0],
    });
  }
  for (const [fault, [signs, sentence]] of Object.entries(NETWORK_FAULTS)) {
    if (!chain.has(...signs)) continue;
    const isAlone =
      fault === 'untrusted' &&
      chain.has('UNABLE_TO_VERIFY_LEAF_SIGNATURE', /unable to verify the first certificate/);
    const signedBy = isAlone
      ? `${authority}, or it does not send the intermediate certificate that signed it`
      : authority;
    const message = sentence.replace('<place>', place).replace('<authority>', signedBy);
    return new PluginError(message, { fix: fixes[fault as NetworkFault], cause: chain.errors[0] });
  }
  return undefined;
}
