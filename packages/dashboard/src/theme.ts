// Runs before the page is painted.
const chosen = localStorage.getItem('gateway-theme');
if (chosen) document.documentElement.dataset['theme'] = chosen;
