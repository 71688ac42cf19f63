import { clampTime, eventId } from '@gateway/core/events';
import { oneAtATime, withTimeout } from '@gateway/core/process';
import { route } from '@gateway/core/routing';
import type { EventCreator } from '@gateway/ingest/commit/event-creator';
import type { Project } from '@gateway/ingest/routing/project';
import { claimUntold, markTold, type UntoldNotification } from '@gateway/store/config';
import { undeliveredEvents } from '@gateway/store/deliveries';
import type { Shard } from '@gateway/store/shards';
import type { ProcessContext } from '../config/agent-context.js';
import { operationalData, operationalType } from '../model/operational-events.js';

interface AnnouncerOptions extends Pick<ProcessContext, 'database' | 'configCache' | 'log'> {
  /** The shards that this agent works on, where it can create events. */
  readonly shards: () => readonly Pick<Shard, 'name' | 'database'>[];
  readonly events: Pick<EventCreator, 'create'>;
}

const TIMEOUT_MS = 10_000;
const CLOSE_MS = 2_000;
/** More notifications of a kind and project that wait together share events. */
const ALONE_MAX = 5;
/** So many fit in a message of Slack or Teams. */
const TOGETHER_MAX = 10;
/** How long the end of a problem waits until services for alerts have heard of the problem. */
const END_WAITS_MS = 24 * 3_600_000;

/**
 * Makes operational events of notifications for the endpoints that subscribe to them: one when it is
 * raised, and one when it ends. The database says which are due. Their ids derive from the
 * notifications, so that another agent does not make them twice.
 */
export class Announcer {
  readonly #runNext = oneAtATime(() => this.#run());
  #running = Promise.resolve();
  #isFailing = false;
  #isClosed = false;

  constructor(private readonly options: AnnouncerOptions) {}

  hurry(): void {
    if (!this.#isClosed) this.#running = this.#runNext();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await withTimeout(this.#running, CLOSE_MS).catch(() => undefined);
  }

  async #run(): Promise<void> {
    if (this.#isClosed) return;
    const { database, shards, log } = this.options;
    try {
      const names = shards().map(({ name }) => name);
      const untold = await claimUntold(database.pool, names);
      const groups = new Map<string, UntoldNotification[]>();
      for (const it of untold) {
        const key = `${it.projectId} ${operationalType(it, it.eventId !== null)}`;
        groups.set(key, [...(groups.get(key) ?? []), it]);
      }
      // A shard that does not answer must not delay the projects of others.
      const outcomes = await Promise.allSettled(
        [...groups.values()].map((group) => this.#announce(group)),
      );
      const failed = outcomes.find((it) => it.status === 'rejected');
      if (failed) throw failed.reason;
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing && !this.#isClosed)
        log.warn({ error }, 'Could not create operational events; trying again in a minute.');
      this.#isFailing = true;
    }
  }

  /** The notifications are of one project and type, oldest first. */
  async #announce(group: readonly UntoldNotification[]): Promise<void> {
    const [{ projectId, eventId: told }] = group as readonly [UntoldNotification];
    const isEnd = told !== null;
    const project = this.options.configCache.projects.get(projectId);
    // The lease of the claim ends in a minute, and it is tried again.
    if (!project) return;
    const ready = isEnd ? await this.#withoutEarly(group, project) : group;
    const size = ready.length > ALONE_MAX ? TOGETHER_MAX : 1;
    for (let at = 0; at < ready.length; at += size) {
      const some = ready.slice(at, at + size);
      const [first, ...others] = some as [UntoldNotification, ...UntoldNotification[]];
      const since = isEnd ? first.endedAt! : first.createdAt;
      const ids = some.map((it) => it.id);
      const id = eventId(
        first.id,
        [isEnd ? 'resolve' : 'trigger', ...others.map((it) => it.id)].join(),
        clampTime(since.getTime()),
      );
      // Trouble with operational events makes no more of them.
      const reported = some.filter(({ facts }) => facts.is_operational === undefined);
      if (reported.length > 0) await this.#create(project, reported, { id, isEnd });
      await markTold(this.options.database.pool, ids, { eventId: id, isEnd });
    }
  }

  async #create(
    project: Project,
    notifications: readonly UntoldNotification[],
    { id, isEnd }: { readonly id: string; readonly isEnd: boolean },
  ): Promise<void> {
    const eventType = operationalType(notifications[0]!, isEnd);
    const event = {
      projectId: project.id,
      messageType: 'single',
      endpointId: null,
      ownerId: null,
      idempotencyKey: null,
      headers: {},
      eventType,
      data: operationalData(eventType, notifications),
    } as const;
    if (!(await this.#isWanted(project, event))) return;
    await withTimeout(this.options.events.create(event, id), TIMEOUT_MS);
  }

  /** The configuration in memory may lack a subscription that has just been made. */
  async #isWanted(project: Project, event: Parameters<typeof route>[1]): Promise<boolean> {
    if (route(project, event).outcome !== 'no_subscription') return true;
    const { configCache } = this.options;
    await configCache.refresh();
    const now = configCache.projects.get(project.id);
    return now !== undefined && route(now, event).outcome !== 'no_subscription';
  }

  /**
   * A service that hears of the end first ignores it, and would show the problem for ever. So the end
   * waits for deliveries to PagerDuty and Opsgenie that are being retried.
   */
  async #withoutEarly(
    ends: readonly UntoldNotification[],
    project: Project,
  ): Promise<readonly UntoldNotification[]> {
    const endpointIds = [...project.endpoints.values()]
      .filter(({ format }) => format === 'pagerduty' || format === 'opsgenie')
      .map(({ id }) => id);
    const shard = this.options.shards().find(({ name }) => name === project.shard);
    if (endpointIds.length === 0 || !shard) return ends;
    const eventIds = ends.map((it) => it.eventId!);
    const early = await undeliveredEvents(shard.database.pool, project.id, {
      eventIds,
      endpointIds,
    });
    const longAgo = Date.now() - END_WAITS_MS;
    return ends.filter((it) => !early.has(it.eventId!) || it.endedAt!.getTime() < longAgo);
  }
}
