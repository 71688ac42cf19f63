import type { ComponentType } from 'preact';

type Params = Readonly<Record<string, string>>;

export interface PageProps {
  readonly params: Params;
}

/**
 * Matches a path such as `/projects/:project/events/:id`. Returns its parameters; undefined for
 * another path.
 */
export function match(pattern: string, path: string): Params | undefined {
  const wanted = pattern.split('/');
  const given = path.replace(/\/+$/, '').split('/');
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? '';
    if (part.startsWith(':')) params[part.slice(1)] = decode(value);
    else if (part !== value) return undefined;
  }
  return params;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export interface PageRoute {
  /** Below the dashboard's root. Paths below `/projects/:project` are pages of a project. */
  readonly path: string;
  /** A page is a separate chunk of the bundle, loaded on first use. */
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>;
  /** An entry of the navigation, with the key that follows `g`. */
  readonly nav?: {
    readonly label: string;
    readonly key: string;
    /** True if omitted. */
    readonly isShown?: () => boolean;
  };
}
