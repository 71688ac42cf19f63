import { render } from 'preact';
import { App } from './app/app.js';
import { startShortcuts } from './components/shortcuts.js';
import { startRouter } from './router/location.js';

startRouter();
startShortcuts();
render(<App />, document.getElementById('app')!);
