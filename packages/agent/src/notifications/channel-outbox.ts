import { clip } from '@gateway/core/json';
import type { Open } from '@gateway/core/crypto';
import { isGatewayError } from '@gateway/core/errors';
import { clampTime, eventId } from '@gateway/core/events';
import { backoffMs, VERSION, withTimeout } from '@gateway/core/process';
import type { EventCreator } from '@gateway/ingest/commit/event-creator';
import { whyNotOpened } from '@gateway/ingest/routing/project';
import {
  channelSettings,
  claimChannels,
  giveUpChannelNotifications,
  readChannelQueue,
  recordChannelRequest,
  type ChannelNotification,
  type ChannelRow,
} from '@gateway/store/config';
import type { ProcessContext } from '../config/agent-context.js';
import type { HttpDestination } from '../destinations/http/http-destination.js';
import { unsendable, type RequestResult } from '../destinations/http/sender.js';
import { channelRequest, type RequestType } from './channel-requests.js';
import { operationalEvent } from './operational-events.js';

interface ChannelOutboxOptions extends Pick<ProcessContext, 'config' | 'database' | 'log'> {
  /** The shards that this agent works on, where it can create events. */
  readonly shards: () => readonly string[];
  readonly open: Open;
  readonly http: Pick<HttpDestination, 'post'>;
  readonly events: Pick<EventCreator, 'create'>;
}

const POLL_MS = 10_000;
/** The pause of a channel after a request. Slack accepts one message per second. */
const PACE_MS = 1_000;
const BACKOFF = { baseMs: 2_000, capMs: 300_000 };
const TIMEOUT_MS = 10_000;
const CLOSE_MS = 2_000;
const GIVE_UP_HOURS = 24;
const CLEAN_UP_MS = 3_600_000;
/** The maximum number of channels that an agent sends to at once. */
const CHANNELS_MAX = 20;
/** The maximum number of notifications in one message. */
const GROUP_MAX = 50;
/** Responses that a repetition of the same request would not change. */
const FINAL = [400, 413, 422];

interface ChannelOutcome {
  /** Null if the notification was sent. */
  readonly error: string | null;
  readonly isFinal: boolean;
  readonly status?: number | null;
}

/**
 * Sends notifications to the channels of projects, at least once and in order. The database queues
 * them when they are raised and when they end. One agent at a time sends to a channel, one request
 * or event at a time; a failed one is retried until `GIVE_UP_HOURS` have passed. A refused group is
 * retried in halves, so that a final refusal affects the notification alone that caused it.
 */
export class ChannelOutbox {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isHurried = false;
  #isFailing = false;
  #cleanUpAtMs = 0;
  #stopped = false;

  constructor(private readonly options: ChannelOutboxOptions) {}

  start(): void {
    this.hurry();
  }

  async close(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await withTimeout(Promise.resolve(this.#running), CLOSE_MS).catch(() => undefined);
  }

  hurry(): void {
    this.#isHurried = true;
    if (this.#running || this.#stopped) return;
    clearTimeout(this.#timer);
    this.#running = this.#send().finally(() => (this.#running = undefined));
  }

  async #send(): Promise<void> {
    const { database, shards, log } = this.options;
    let waitMs = POLL_MS;
    try {
      while (this.#isHurried && !this.#stopped) {
        this.#isHurried = false;
        await this.#cleanUp();
        const channels = await claimChannels(database.pool, {
          shards: shards(),
          max: CHANNELS_MAX,
        });
        await Promise.all(channels.map((channel) => this.#sendTo(channel)));
        if (channels.length > 0) waitMs = PACE_MS;
        if (channels.length === CHANNELS_MAX) this.#isHurried = true;
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing && !this.#stopped)
        log.warn({ error }, 'Could not send notifications to channels; retrying.');
      this.#isFailing = true;
    }
    if (!this.#stopped) this.#timer = setTimeout(() => this.hurry(), waitMs).unref();
  }

  async #sendTo(channel: ChannelRow): Promise<void> {
    const { database, log } = this.options;
    const waiting = await this.#next(channel);
    if (waiting.length === 0) return;
    const { type } = channel;
    const { error, isFinal, status, count } =
      type === 'events'
        ? { ...(await this.#createEvent(waiting[0]!)), count: 1 }
        : await this.#request(channel, type, waiting);
    const notifications = waiting.slice(0, count);
    const isGood = error === null;
    const isDone = isGood || (isFinal && count === 1) || waiting[0]!.kind === 'channel_test';
    const fields = {
      channel_id: channel.id,
      project_id: channel.project_id,
      type,
      kind: notifications[0]!.kind,
      notifications: count,
    };
    if (isGood) log.info(fields, 'A notification was sent to a channel.');
    else if (isDone || channel.failures === 0)
      log.warn(
        { ...fields, status, last_error: error },
        isDone
          ? 'A channel refused a notification, which is given up.'
          : 'A notification could not be sent to a channel; trying again.',
      );
    await recordChannelRequest(database.pool, channel, {
      sent: isDone ? notifications.map(({ n }) => n) : [],
      error,
      waitMs: isDone || isFinal ? PACE_MS : backoffMs(channel.failures + 1, BACKOFF),
    });
  }

  /**
   * Returns the notifications of the channel's next message: of one kind, in order. Each failure in a
   * row halves them.
   */
  async #next(channel: ChannelRow): Promise<readonly ChannelNotification[]> {
    const queue = await readChannelQueue(this.options.database.pool, channel.id, GROUP_MAX);
    const [first] = queue;
    const end = queue.findIndex(
      ({ kind, isRecovery }) => kind !== first?.kind || isRecovery !== first.isRecovery,
    );
    const length = end < 0 ? queue.length : end;
    return queue.slice(0, Math.ceil(length / 2 ** channel.failures));
  }

  /**
   * Creates the event about a notification. Its id derives from the notification, so that another
   * agent or channel does not create a second one.
   */
  async #createEvent(notification: ChannelNotification): Promise<ChannelOutcome> {
    const { id, projectId, isRecovery, queuedAt } = notification;
    const event = {
      projectId,
      messageType: 'single',
      endpointId: null,
      ownerId: null,
      idempotencyKey: null,
      headers: {},
      ...operationalEvent(notification),
    } as const;
    const action = isRecovery ? 'resolve' : 'trigger';
    try {
      // A shard that does not answer must not stop the channels of the others.
      await withTimeout(
        this.options.events.create(event, eventId(id, action, clampTime(queuedAt.getTime()))),
        TIMEOUT_MS,
      );
      return { error: null, isFinal: true };
    } catch (error) {
      return { error: (error as Error).message, isFinal: isGatewayError(error, 'invalid_request') };
    }
  }

  async #request(
    channel: ChannelRow,
    type: RequestType,
    notifications: readonly ChannelNotification[],
  ): Promise<ChannelOutcome & { readonly count: number }> {
    const { config, http } = this.options;
    let settings;
    try {
      settings = this.#settingsOf(channel);
    } catch (error) {
      return { ...outcomeOf(unsendable(whyNotOpened(error))), count: notifications.length };
    }
    const { request, count } = channelRequest({ type, settings }, notifications, config);
    const body = Buffer.from(JSON.stringify(request.body));
    const headers = {
      'content-type': 'application/json',
      accept: '*/*',
      'user-agent': `gateway/${VERSION}`,
      ...request.headers?.(body),
    };
    const result = await http.post({
      projectId: channel.project_id,
      url: request.url,
      headers: Object.entries(headers).flat(),
      body,
      timeoutMs: TIMEOUT_MS,
    });
    return { ...outcomeOf(result), count };
  }

  #settingsOf({ id, type, settings }: ChannelRow): ChannelRow['settings'] {
    const rows = channelSettings(type);
    return Object.fromEntries(
      Object.entries(settings).map(([name, value]) => [
        name,
        rows[name]?.isSecret
          ? this.options.open(value, ['notification_channels', id, name])
          : value,
      ]),
    );
  }

  async #cleanUp(): Promise<void> {
    if (performance.now() < this.#cleanUpAtMs) return;
    const { database, log } = this.options;
    for (const lost of await giveUpChannelNotifications(database.pool, GIVE_UP_HOURS))
      log.error(
        lost,
        `Notifications could not be sent to a channel for ${GIVE_UP_HOURS} hours and are given up.`,
      );
    this.#cleanUpAtMs = performance.now() + CLEAN_UP_MS;
  }
}

function outcomeOf({ status, body, failure }: RequestResult): ChannelOutcome {
  const isGood = status !== null && status >= 200 && status < 300;
  const answer = body === '' ? '' : `: ${clip(body, 300)}`;
  return {
    error: isGood ? null : (failure?.message ?? `It answered ${status}${answer}`),
    isFinal: status !== null && FINAL.includes(status),
    status,
  };
}
