import type { ComponentType } from 'preact';
import type { PageProps } from '../router/match.js';

export interface PageRoute {
  /** Below the dashboard's root. Paths below `/projects/:project` are pages of a project. */
  readonly path: string;
  /** A page is a separate chunk of the bundle, loaded on first use. */
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>;
  /** An entry of the navigation, with the key that follows `g`. */
  readonly nav?: {
    readonly label: string;
    readonly key: string;
    /** Everyone sees the entry when this is omitted. */ readonly isShown?: () => boolean;
  };
}
