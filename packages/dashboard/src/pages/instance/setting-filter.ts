import type { InstanceSetting } from '@gateway/client';

export interface SettingFilter {
  /** Words that must all occur in key, summary, value or origin; case-insensitive. */
  readonly search: string;
  /** Only settings that are set explicitly. */
  readonly isSet: boolean;
}

export function matching(
  settings: readonly InstanceSetting[],
  { search, isSet }: SettingFilter,
): InstanceSetting[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return settings.filter((setting) => {
    const text =
      `${setting.key} ${setting.summary} ${textOf(setting.value)} ${setting.origin}`.toLowerCase();
    return (!isSet || setting.origin !== 'default') && words.every((word) => text.includes(word));
  });
}

/** Formats a value as in a file, lists with commas; `–` for an empty value. */
export function textOf(value: unknown): string {
  if (value === null || value === '') return '–';
  if (Array.isArray(value)) return value.length === 0 ? '–' : value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
