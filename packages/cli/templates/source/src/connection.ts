import { PluginError } from '@gateway/plugin';

/** The connection of a source record, as `connection.json` describes it. A secret field has `"x-secret": true` there: it is sealed at rest. */
export interface Connection {
  readonly folder: string;
}

/** The settings of `settings.json`, by the part of their keys after `source.__NAME__.` */
export interface Settings {
  readonly poll_ms: number;
}

/** An error of the file system as a sentence with what to change. */
export function explained(error: unknown, { folder }: Connection): PluginError {
  if (error instanceof PluginError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'it does not exist',
    ENOTDIR: 'it is no folder',
    EACCES: 'this user may not read it',
  };
  return new PluginError(`The folder ${folder} cannot be read: ${reasons[code ?? ''] ?? message}.`, { fix: 'Check folder.', cause: error });
}
