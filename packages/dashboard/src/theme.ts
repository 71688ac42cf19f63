import { storeOf } from './router/storage.js';
import { applyTheme, portalLink, themeOf } from './session/portal-theme.js';

// Runs before the first paint, so that the page never appears in another theme.
const link = portalLink();
const chosen = storeOf('localStorage').get('gateway-theme');
if (link) applyTheme(themeOf(link));
else if (chosen) document.documentElement.dataset['theme'] = chosen;
