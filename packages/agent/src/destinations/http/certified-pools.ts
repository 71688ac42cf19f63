import { createSecureContext, type SecureContext } from 'node:tls';
import type { ClientCertificate, RequestDispatcher } from '@gateway/core/http';

export interface IdentifiedCertificate extends ClientCertificate {
  readonly id: string;
}

interface CertifiedPoolsOptions {
  readonly open: (context: SecureContext) => RequestDispatcher;
  readonly authorities: readonly string[] | undefined;
  readonly max?: number;
}

/** The maximum number of open pools. Beyond it, the least recently used pool is closed. */
const CERTIFICATES_MAX = 500;

/** Connection pools by client certificate: a connection must not be shared between certificates. */
export class CertifiedPools {
  /** Pools by certificate id, in LRU order. */
  readonly #pools = new Map<string, RequestDispatcher>();

  constructor(private readonly options: CertifiedPoolsOptions) {}

  /** Throws if OpenSSL rejects the certificate. */
  of(certificate: IdentifiedCertificate): RequestDispatcher {
    const { id } = certificate;
    const pool = this.#pools.get(id) ?? this.#open(certificate);
    this.#pools.delete(id);
    this.#pools.set(id, pool);
    const [oldest] = this.#pools;
    if (oldest && this.#pools.size > (this.options.max ?? CERTIFICATES_MAX)) {
      this.#pools.delete(oldest[0]);
      // `close` lets in-flight requests complete.
      void oldest[1].close().catch(() => undefined);
    }
    return pool;
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()));
  }

  #open({ cert, key }: ClientCertificate): RequestDispatcher {
    const { authorities, open } = this.options;
    return open(createSecureContext({ cert, key, ...(authorities && { ca: [...authorities] }) }));
  }
}
