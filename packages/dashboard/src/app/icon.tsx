/** On a grid of 24 units, in the colour of the text. */
const PATHS = {
  account: 'M20 21a8 8 0 0 0-16 0M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8z',
  audit: 'M6 3h9l4 4v14H6zM15 3v4h4M9 12h7M9 16h7',
  deliveries: 'M21 3 10 14M21 3l-7 18-4-7-7-4z',
  endpoints: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM3 12h18M12 3c4 4 4 14 0 18M12 3c-4 4-4 14 0 18',
  'event-types':
    'M8 4C6 4 5 5 5 7v2c0 2-1 3-2 3 1 0 2 1 2 3v2c0 2 1 3 3 3M16 4c2 0 3 1 3 3v2c0 2 1 3 2 3-1 0-2 1-2 3v2c0 2-1 3-3 3',
  events: 'M3 12h4l3 8 4-16 3 8h4',
  instance: 'M4 4h16v6H4zM4 14h16v6H4zM8 7v.01M8 17v.01',
  issues: 'M12 8v5M12 16v.01M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z',
  'api-keys': 'M15 14a5 5 0 1 0-4.6-3L3 18.5V21h4v-3h3v-3l1.5-1.5',
  notifications: 'M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4',
  other: 'M5 12h14M13 6l6 6-6 6',
  overview: 'M4 4h6v9H4zM14 4h6v4h-6zM14 12h6v8h-6zM4 17h6v3H4z',
  people:
    'M16 20a6 6 0 0 0-13 0M9.5 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM21 20a6 6 0 0 0-3.5-5.5M16 4.300a3.5 3.5 0 0 1 0 6.400',
  'portal-links':
    'M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6L11.5 7M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1.5-1.5',
  quarantine: 'M12 3 5 6v6c0 4.5 3 7.5 7 9 4-1.5 7-4.5 7-9V6zM12 8v4M12 15.5v.01',
  settings: 'M4 7h9M19 7h1M4 17h1M11 17h9M16 4v6M8 14v6',
  sources: 'M14 4h6v16h-6M3 12h11M10 8l4 4-4 4',
  subscriptions: 'M4 5h16l-6 8v6l-4-2v-4z',
} as const;

export type IconName = keyof typeof PATHS;

export function isIcon(name: string): name is IconName {
  return Object.hasOwn(PATHS, name);
}

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
