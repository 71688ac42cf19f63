import { colourOf, contrastOf, hexOf, luminanceOf, mixed, readable } from '../format/colour.js';
import { own } from '../format/text.js';
import { storeOf } from '../router/storage.js';

const PORTAL_PLACE =
  /\/portal\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(\/|$)/;
/** Links that opened the portal. Stored per tab, so that another tab needs the link again. */
const links = storeOf('sessionStorage');

/** From the fragment of the current or stored portal link. Undefined outside the portal. */
export function portalLink(): URLSearchParams | undefined {
  const [, project] = PORTAL_PLACE.exec(location.pathname) ?? [];
  if (project === undefined) return undefined;
  const key = `gateway-portal-${project}`;
  const fragment = new URLSearchParams(location.hash.slice(1));
  if (!fragment.has('token')) return new URLSearchParams(links.get(key) ?? '');
  links.set(key, fragment.toString());
  return fragment;
}

const BASE = {
  light: { background: '#f6f7f9', surface: '#ffffff', text: '#151a22' },
  dark: { background: '#0e1116', surface: '#161a21', text: '#e7eaf0' },
} as const;
const FONTS: Readonly<Record<string, string>> = {
  serif: "Georgia, 'Times New Roman', serif",
  rounded: "ui-rounded, 'SF Pro Rounded', 'Nunito', system-ui, sans-serif",
};
/** Between text and background. Colours with less contrast are ignored. */
const CONTRAST_MIN = 7;

interface PortalTheme {
  readonly scheme: 'light' | 'dark' | undefined;
  /** Built from parsed values, so that no text of a link is inserted into CSS. */
  readonly properties: Readonly<Record<string, string>>;
}

/**
 * Parameters: `theme` (light or dark), the colours `accent`, `background`, `surface` and `text`
 * (six hexadecimal digits), `radius` (0 to 16 pixels) and `font` (serif or rounded). Ignores
 * invalid values, and colours that would make text unreadable.
 */
export function themeOf(link: URLSearchParams): PortalTheme {
  const asked = link.get('theme');
  const grounds = groundsOf(link);
  const scheme = grounds?.scheme ?? (asked === 'light' || asked === 'dark' ? asked : undefined);
  const font = own(FONTS, link.get('font') ?? '');
  const radius = /^\d{1,2}$/.test(link.get('radius') ?? '')
    ? Math.min(16, Number(link.get('radius')))
    : undefined;
  return {
    scheme,
    properties: {
      ...grounds?.properties,
      ...accentOf(link, grounds?.colours),
      ...(font && { '--font': font }),
      ...(radius !== undefined && {
        '--radius': `${radius}px`,
        '--radius-s': `${Math.round(radius * 0.6)}px`,
      }),
    },
  };
}

type Colour = NonNullable<ReturnType<typeof colourOf>>;
type Grounds = Readonly<Record<keyof (typeof BASE)['light'], Colour>>;

/**
 * Background, surface, text and the colours mixed from them. Undefined if none of the three is
 * given, or the text would be unreadable.
 */
function groundsOf(link: URLSearchParams) {
  const given = Object.fromEntries(
    ['background', 'surface', 'text'].map((name) => [name, colourOf(link.get(name))]),
  );
  const ground = given['background'] ?? given['surface'];
  if (!ground && !given['text']) return undefined;
  const isDark = ground ? luminanceOf(ground) < 0.18 : luminanceOf(given['text']!) > 0.5;
  const scheme = isDark ? ('dark' as const) : ('light' as const);
  const colour = (name: keyof Grounds) =>
    given[name] ?? (name === 'text' ? undefined : ground) ?? colourOf(BASE[scheme][name])!;
  const colours: Grounds = {
    background: colour('background'),
    surface: colour('surface'),
    text: colour('text'),
  };
  const { background, surface, text } = colours;
  if (contrastOf(text, background) < CONTRAST_MIN || contrastOf(text, surface) < CONTRAST_MIN)
    return undefined;
  const sunken = mixed(surface, text, 0.07);
  const properties = {
    '--background': hexOf(background),
    '--surface': hexOf(surface),
    '--text': hexOf(text),
    '--sunken': hexOf(sunken),
    '--hover': hexOf(mixed(surface, text, 0.05)),
    '--border': hexOf(mixed(surface, text, 0.15)),
    '--border-strong': hexOf(mixed(surface, text, 0.5)),
    '--muted': hexOf(readable(mixed(surface, text, 0.65), text, sunken)),
  };
  return { scheme, colours, properties };
}

/**
 * As the background of buttons and as readable text, which needs a darker or lighter shade on most
 * backgrounds.
 */
function accentOf(link: URLSearchParams, own: Grounds | undefined): Record<string, string> {
  const accent = colourOf(link.get('accent'));
  if (!accent) return {};
  const [black, white] = [colourOf('000000')!, colourOf('ffffff')!];
  const shades = (['light', 'dark'] as const).map((scheme) => {
    const { surface, text } = own ?? {
      surface: colourOf(BASE[scheme].surface)!,
      text: colourOf(BASE[scheme].text)!,
    };
    const soft = mixed(surface, accent, 0.14);
    return { text: hexOf(readable(accent, text, soft)), soft: hexOf(soft) };
  });
  const [light, dark] = shades as [(typeof shades)[0], (typeof shades)[0]];
  return {
    '--accent': `light-dark(${light.text}, ${dark.text})`,
    '--accent-soft': `light-dark(${light.soft}, ${dark.soft})`,
    '--accent-fill': hexOf(accent),
    '--on-accent': contrastOf(accent, white) >= 4.5 ? hexOf(white) : hexOf(black),
  };
}

export function applyTheme({ scheme, properties }: PortalTheme): void {
  const { dataset, style } = document.documentElement;
  if (scheme) dataset['theme'] = scheme;
  else delete dataset['theme'];
  for (const [name, value] of Object.entries(properties)) style.setProperty(name, value);
}
