import { camel } from './resources.js';
import { pathOf, resourceOf, type Route } from './route.js';

export interface Operation {
  readonly route: Route;
  readonly path: string;
  readonly parameters: readonly string[];
  /** Also the property of the client, in camel case. */
  readonly group: string;
  readonly name: string;
}

const VERBS = { get: 'get', post: 'create', put: 'update', delete: 'delete' } as const;

/** Throws if two routes of a group share a name; in that case, set `name` on one of them. */
export function operationsOf(routes: readonly Route[]): Operation[] {
  const names = new Set<string>();
  return routes.map((route) => {
    const full = pathOf(route);
    const path = full.replaceAll(/:(\w+)/g, '{$1}');
    const parameters = [...full.matchAll(/:(\w+)/g)].map(([, parameter]) => parameter!);
    const group = resourceOf(route);
    const name = route.name ?? nameOf(route, routes);
    if (names.has(`${group}.${name}`))
      throw new Error(`${path}: another route is ${group}.${name}; give one of them a name`);
    names.add(`${group}.${name}`);
    return { route, path, parameters, group, name };
  });
}

function nameOf({ method, path, reach }: Route, routes: readonly Route[]): string {
  const [, ...inner] = path.split('/').slice(1);
  const words = inner.filter((part) => !part.startsWith(':'));
  const last = inner.at(-1) ?? '';
  const isItem = last.startsWith(':') || path === '';
  const isCollection =
    !isItem && routes.some((it) => it.method === 'get' && it.path === path && it.reach === reach);
  if (!isItem && !isCollection) return camel(words.join('-'));
  const verb = isCollection && method === 'get' ? 'list' : VERBS[method];
  const thing = words.map((word) => pascal(camel(word))).join('');
  return verb + (verb === 'list' ? thing : thing.replace(/s$/, ''));
}

export function pascal(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
