// Keeps the session where all tabs find it. In IndexedDB and not in localStorage: what one tab writes to localStorage
// another one reads only some milliseconds later, lock or no lock. With it the test of the two tabs failed 4 times in
// 10 (Chromium 156): the second tab sent the refresh token that the first one had just exchanged.

const opened = new Promise((resolve, reject) => {
  const request = indexedDB.open('app', 1);
  request.onupgradeneeded = () => request.result.createObjectStore('kept');
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

async function transact(mode, work) {
  const transaction = (await opened).transaction('kept', mode);
  const request = work(transaction.objectStore('kept'));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result ?? null);
    transaction.onabort = () => reject(transaction.error);
  });
}

export const store = {
  load: () => transact('readonly', (kept) => kept.get('session')),
  save: (session) => transact('readwrite', (kept) => kept.put(session, 'session')),
};
