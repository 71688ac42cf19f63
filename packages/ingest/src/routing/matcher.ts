import { FilterBudget } from '@gateway/core/events';
import { parseInSteps } from '@gateway/core/json';
import type { ProjectPace } from '@gateway/core/process';
import { needsMatching, route, type RoutableEvent, type Route } from '@gateway/core/routing';
import type { Endpoint, Project } from './project.js';

/** Comparisons of filters that take as long as one delivery more of an event: most of it in Postgres. */
const WORK_PER_DELIVERY = 1_000;
/** Characters of a body that are parsed at once: it takes a few milliseconds, for which a batch of other events waits. */
export const BODY_AT_ONCE_MAX = 64 * 1024;
/** Thrown in place of a larger one. */
const LARGE_BODY = new Error('the body is too large to be parsed at once');
const refuse = (): never => {
  throw LARGE_BODY;
};

/** True when a subscription decides whose filter this process cannot read. */
const isUnreadable = (project: Project, event: RoutableEvent) => project.unreadableFilter !== undefined && needsMatching(event);

/** Finds the endpoints of events by the configuration in memory. */
export class Matcher {
  /** @param pace counts the comparisons and deliveries of each project */
  constructor(private readonly pace: ProjectPace) {}

  /** Projects that are over their share of routing now. */
  get postponed(): readonly string[] {
    return this.pace.over;
  }

  /**
   * Routes an event; undefined when it is to stay pending, and to be routed later: its project is over its share, a filter cannot be read, or asks for its body,
   * which is too large to be parsed at once.
   */
  route(project: Project | undefined, event: RoutableEvent): Route<Endpoint> | undefined {
    if (!project) return route(project, event);
    if (isUnreadable(project, event)) return undefined;
    if (this.pace.isOver(project.id)) return undefined;
    const budget = new FilterBudget();
    try {
      const routed = route(project, event, budget, event.data.length > BODY_AT_ONCE_MAX ? refuse : undefined);
      this.#count(project, budget, routed);
      return routed;
    } catch (error) {
      if (error === LARGE_BODY) return undefined;
      throw error;
    }
  }

  /** The same, but a large body is parsed in steps. */
  *routeInSteps(project: Project | undefined, event: RoutableEvent): Generator<void, Route<Endpoint> | undefined> {
    const routed = this.route(project, event);
    if (routed || !project || this.pace.isOver(project.id) || isUnreadable(project, event)) return routed;
    // Before the work, so that no other event of the project begins meanwhile.
    this.pace.add(project.id, event.data.length);
    const { value, sizes } = yield* parseInSteps(event.data);
    const budget = new FilterBudget(undefined, sizes);
    const late = route(project, event, budget, () => value);
    this.#count(project, budget, late);
    return late;
  }

  #count({ id }: Project, { cost }: FilterBudget, { targets }: Route<Endpoint>): void {
    this.pace.add(id, cost + Math.max(0, targets.length - 1) * WORK_PER_DELIVERY);
  }
}
