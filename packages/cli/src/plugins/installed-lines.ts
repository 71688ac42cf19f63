import type { Installed } from './install.js';

/** What a person is told of plugins that were just installed or linked. */
export function installedLines(done: 'installed' | 'linked', installed: readonly Installed[]): string[] {
  return installed.map(({ plugin: { kind, name, version, package: from }, refusal }) => {
    const next = refusal
      ? `inactive because ${refusal.message}; ${refusal.fix}`
      : kind === 'source'
        ? `ready for sources of the type ${name}`
        : 'active';
    return `${done} the ${kind} plugin ${name} (${from} ${version}): ${next}`;
  });
}
