const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is not a folder',
};

/** Why a file cannot be read or written, without Node's repetition of its path. */
export function fileReason(error: unknown): string {
  const { code = '', message } = error as { code?: string; message?: string };
  return REASONS[code] ?? message ?? String(error);
}
