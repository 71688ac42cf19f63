import type { ComponentType } from 'preact';

type Params = Readonly<Record<string, string>>;

export interface PageProps {
  /** From the path: the id or the name of the resource, if the page is about one. */
  readonly id: string;
}

/** For a pattern such as `/projects/:project/events/:id`. Undefined if the path does not match. */
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
  /**
   * Relative to the dashboard root. Patterns that begin with `/projects/:project` are pages of a
   * project.
   */
  readonly path: string;
  /** A chunk of the bundle that is loaded on first use. */
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>;
  /** With the key that opens the page after `g`. */
  readonly nav?: {
    readonly label: string;
    readonly key: string;
    /** Default: always. */
    readonly isShown?: () => boolean;
  };
}
