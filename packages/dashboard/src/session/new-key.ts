import { signal } from '@preact/signals';

/** A key just created here. The API returns it once; it is kept until the dashboard reloads. */
export const newKey = signal<{ readonly projectId: string; readonly key: string } | undefined>(
  undefined,
);
