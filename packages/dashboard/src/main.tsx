import { render } from 'preact';
import { App } from './app/app.js';
import { startShortcuts } from './components/index.js';
import { startRouter } from './router/location.js';
import { showMark } from './session/theme.js';

showMark();
startRouter();
startShortcuts();
render(<App />, document.getElementById('app')!);
