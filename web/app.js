// The page's frame: sections by address fragment, theme, whether the hub answers.
import { $, say } from './dom.js';
import { send, onReach, address, showNothingYet } from './wire.js';
import { accounts } from './accounts.js';
import { phase2 } from './phase2.js';
import { lab, hasLab, spaceName } from './lab.js';
import { live } from './session.js';

const sections = { accounts, phase2, lab };
const heartbeat = 5000; // milliseconds between looks at /healthz; faster while the hub is gone
const heartbeatGone = 1500;

function showSection() {
  const asked = location.hash.slice(1);
  const name = asked in sections && !(asked === 'lab' && !hasLab) ? asked : spaceName ? 'lab' : 'accounts';
  for (const id of Object.keys(sections)) {
    $(id).hidden = id !== name;
    sections[id].seen(id === name);
    const link = document.querySelector(`nav a[href="#${id}"]`);
    if (id === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = [spaceName, document.querySelector(`#${name}-h`).textContent, 'authhub'].filter(Boolean).join(' · ');
}

const themes = ['auto', 'light', 'dark'];
const themeNames = { auto: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' };

function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $('theme').textContent = themeNames[theme];
  try {
    localStorage.setItem('authhub-theme', theme);
  } catch {
    // Storage is switched off: the choice lasts as long as the page.
  }
  document.dispatchEvent(new Event('theme'));
}

function startTheme() {
  let theme = 'auto';
  try {
    theme = localStorage.getItem('authhub-theme') ?? theme;
  } catch {
    // As above.
  }
  if (!themes.includes(theme)) theme = 'auto';
  setTheme(theme);
  $('theme').addEventListener('click', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    setTheme(theme);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => document.dispatchEvent(new Event('theme')));
}

let here = null;

onReach(reachable => {
  const back = here === false && reachable;
  here = reachable;
  $('pulse').dataset.state = reachable ? 'here' : 'gone';
  $('pulse-text').textContent = reachable ? 'answering' : 'gone';
  $('gone').textContent = reachable ? '' :
    `The hub at ${address('')} no longer answers. It was stopped, or its address has changed. ` +
    `Start it again in the terminal; this page keeps asking and goes on by itself.${live() ? ' Your tokens are still here.' : ''}`;
  if (back) {
    say('The hub answers again.');
    showSection();
  }
});

async function beat() {
  if (!document.hidden) await send('GET', 'healthz', { quiet: true });
  setTimeout(beat, here === false ? heartbeatGone : heartbeat);
}

$('latest').addEventListener('click', () => {
  $('wire').scrollIntoView();
  $('wire-h').focus({ preventScroll: true });
});
// What sticks below the header goes by its height, which depends on the width of the page and on the last answer.
new ResizeObserver(() => document.documentElement.style.setProperty('--top', `${$('top').offsetHeight}px`)).observe($('top'));
$('base').textContent = address('');
$('lab-link').hidden = !hasLab;
$('space').textContent = spaceName;
$('space').hidden = !spaceName;
startTheme();
showNothingYet();
for (const section of Object.values(sections)) section.build();
addEventListener('hashchange', () => {
  showSection();
  scrollTo(0, 0);
  $('stage').focus({ preventScroll: true });
});
showSection();
beat();
