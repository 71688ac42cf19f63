import { FilterBudget } from '@gateway/core/events';
import { parseInSteps } from '@gateway/core/json';
import type { TokenBuckets } from '@gateway/core/process';
import { needsMatching, route, type RoutableEvent, type EventRoute } from '@gateway/core/routing';
import type { Endpoint, Project } from './project.js';

/**
 * Filter comparisons that cost as much as one more delivery, whose cost is mostly Postgres time.
 */
const WORK_PER_DELIVERY = 1_000;
/**
 * Characters of a body parsed without yielding. Parsing takes a few milliseconds, during which
 * other events wait.
 */
export const BODY_AT_ONCE_MAX = 64 * 1024;
const LARGE_BODY = new Error('the body is too large to be parsed at once');
const refuse = (): never => {
  throw LARGE_BODY;
};

const isUnreadable = (project: Project, event: RoutableEvent) =>
  project.unreadableFilter !== undefined && needsMatching(event);

export class Matcher {
  constructor(private readonly pace: TokenBuckets) {}

  get postponed(): readonly string[] {
    return this.pace.over;
  }

  /**
   * Undefined leaves the event pending: its project is over its share, or a filter cannot be read
   * or needs a body too large to be parsed without yielding.
   */
  route(project: Project | undefined, event: RoutableEvent): EventRoute<Endpoint> | undefined {
    if (!project) return route(project, event);
    if (isUnreadable(project, event)) return undefined;
    // An ordered project leaves nothing for later; its commits wait instead.
    if (this.pace.isOver(project.id) && !project.isOrdered) return undefined;
    const budget = new FilterBudget();
    try {
      const routed = route(
        project,
        event,
        budget,
        event.data.length > BODY_AT_ONCE_MAX && !project.isOrdered ? refuse : undefined,
      );
      this.#count(project, budget, routed);
      return routed;
    } catch (error) {
      if (error === LARGE_BODY) return undefined;
      throw error;
    }
  }

  *routeInSteps(
    project: Project | undefined,
    event: RoutableEvent,
  ): Generator<void, EventRoute<Endpoint> | undefined> {
    const routed = this.route(project, event);
    if (routed || !project || this.pace.isOver(project.id) || isUnreadable(project, event))
      return routed;
    // Counted before parsing, so that no other event of the project starts meanwhile.
    this.pace.add(project.id, event.data.length);
    const { value, sizes } = yield* parseInSteps(event.data);
    const budget = new FilterBudget(undefined, sizes);
    const late = route(project, event, budget, () => value);
    this.#count(project, budget, late);
    return late;
  }

  #count({ id }: Project, { cost }: FilterBudget, { targets }: EventRoute<Endpoint>): void {
    this.pace.add(id, cost + Math.max(0, targets.length - 1) * WORK_PER_DELIVERY);
  }
}
