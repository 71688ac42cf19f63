import type { Open } from '@gateway/core/crypto';
import { type TokenBuckets, VERSION } from '@gateway/core/process';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { Clock } from '../../model/clock.js';
import type { Attempt } from '../../model/delivery.js';
import type {
  Attempted,
  Destination,
  NotSent,
  SendSignal,
  Shortage,
} from '../../model/destination.js';
import type { TextConfig } from '../../model/notification-text.js';
import { AccessTokens } from './access-tokens.js';
import { RequestBuilder, Unreadable } from './build-request.js';
import { resultOf } from './outcome.js';
import {
  RequestSender,
  unsendable,
  type RequestResult,
  type RequestSenderOptions,
} from './sender.js';

interface HttpDestinationOptions extends RequestSenderOptions {
  readonly open: Open;
  readonly clock: Pick<Clock, 'now'>;
  /** For the messages of presets. */
  readonly texts: TextConfig;
  readonly responsePace: TokenBuckets;
}

export class HttpDestination implements Destination {
  readonly #sender: RequestSender;
  readonly #requests: RequestBuilder;
  readonly #accessTokens: AccessTokens;

  /** @throws GatewayError `tls_file` if the CA file cannot be used */
  constructor(private readonly options: HttpDestinationOptions) {
    const { open, texts } = options;
    this.#sender = new RequestSender(options);
    this.#requests = new RequestBuilder({ open, version: VERSION, texts });
    this.#accessTokens = new AccessTokens({ sender: this.#sender, open });
  }

  get shortage(): Shortage | undefined {
    return this.#sender.shortage;
  }

  send(
    {
      endpoint,
      delivery,
      trace,
      message,
    }: Pick<Attempt, 'endpoint' | 'delivery' | 'trace' | 'message'>,
    signal: SendSignal,
  ): Promise<Attempted | NotSent> {
    const { clock, responsePace } = this.options;
    return new Promise((resolve) => {
      // The monotonic clock is read first, so that the recorded end of the attempt is never before
      // the response.
      let startedAtMs = performance.now();
      let sentAtMs = clock.now();
      const answered = (answer: RequestResult) => {
        if (answer.unsent) {
          const detail = answer.failure?.message ?? '';
          return resolve({ outcome: 'unsent', reason: answer.unsent, detail });
        }
        const durationMs = performance.now() - startedAtMs;
        // The token may have been revoked.
        if (answer.status === 401) this.#accessTokens.forget(endpoint);
        resolve(resultOf(answer, endpoint.url, sentAtMs, durationMs));
      };
      this.#accessTokens.of(endpoint, (token, failure) => {
        if (failure) return answered(failure);
        if (signal.aborted) return resolve({ outcome: 'unsent', reason: 'aborted', detail: '' });
        // Read again to exclude the wait for the token: the recorded time must be the signed time.
        startedAtMs = performance.now();
        sentAtMs = clock.now();
        let request;
        try {
          request = this.#requests.build(endpoint, delivery, sentAtMs, trace, token, message);
        } catch (error) {
          const failed = unsendable((error as Error).message);
          return answered(
            error instanceof Unreadable ? { ...failed, unsent: 'unreadable' } : failed,
          );
        }
        // The answer to a batch settles its events, so it is read whole.
        this.#sender.send(request, answered, endpoint.batch ? undefined : responsePace);
      });
    });
  }

  attributes({ url: text }: Endpoint, status: number | null) {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    return {
      'http.request.method': 'POST',
      ...(status !== null && { 'http.response.status_code': status }),
      // The rest of the URL may be a secret.
      ...(url && {
        'server.address': url.hostname,
        'server.port': Number(url.port) || (url.protocol === 'http:' ? 80 : 443),
      }),
    };
  }

  close(): Promise<void> {
    return this.#sender.close();
  }
}
