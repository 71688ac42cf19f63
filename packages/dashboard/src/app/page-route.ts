import type { ComponentType } from 'preact';
import type { PageProps } from '../router/match.js';

export interface PageRoute {
  /** Below the root of the dashboard. Those below `/projects/:project` are pages of a project. */
  readonly path: string;
  /** Each page is a file of its own in the bundle, loaded when it is first shown. */
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>;
  /** In the navigation, with the key that follows `g`. */
  readonly nav?: {
    readonly label: string;
    readonly key: string;
    /** For those who may see it; everyone when it is left out. */ readonly isShown?: () => boolean;
  };
}
