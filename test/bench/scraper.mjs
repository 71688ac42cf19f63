// The client of `scrape.ts`: scrapes on request and reports the time to the last byte.
import http from 'node:http';

const place = JSON.parse(process.argv[2]);
process.on('message', async (encoding) => {
  const began = performance.now();
  const answer = await new Promise((resolve) =>
    http.get({ ...place, agent: false, headers: { 'accept-encoding': encoding } }, resolve),
  );
  let bytes = 0;
  for await (const chunk of answer) bytes += chunk.length;
  process.send({ scrapeMs: performance.now() - began, bytes });
});
process.send('ready');
