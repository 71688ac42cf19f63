import type { InstanceSetting } from '@gateway/client';

export interface SettingFilter {
  /** Words that must all stand in key, summary, value or origin, in any case. */
  readonly search: string;
  /** Only those that something has set. */
  readonly isSet: boolean;
}

export function matching(settings: readonly InstanceSetting[], { search, isSet }: SettingFilter): InstanceSetting[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return settings.filter((setting) => {
    const text = `${setting.key} ${setting.summary} ${textOf(setting.value)} ${setting.origin}`.toLowerCase();
    return (!isSet || setting.origin !== 'default') && words.every((word) => text.includes(word));
  });
}

/** A value as it is written in a file, lists with commas; `–` for none. */
export function textOf(value: unknown): string {
  if (value === null || value === '') return '–';
  if (Array.isArray(value)) return value.length === 0 ? '–' : value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
