import { signal } from '@preact/signals';

/** The key of a project that was just created here: shown once, and kept until the dashboard is loaded anew. */
export const newKey = signal<{ readonly projectId: string; readonly key: string } | undefined>(undefined);
