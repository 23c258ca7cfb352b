// undici_client.js - GETs each URL through a proxy with Node's undici, and prints the bodies.
//
// usage: node undici_client.js PROXY-URL CA-FILE URL...
'use strict'

const fs = require('fs')
const { ProxyAgent, request } = require('undici')

async function main ([proxy, ca, ...urls]) {
  const place = new URL(proxy)
  const login = [place.username, place.password].map(decodeURIComponent).join(':')
  const dispatcher = new ProxyAgent({
    uri: place.origin,
    token: place.username ? 'Basic ' + Buffer.from(login).toString('base64') : undefined,
    requestTls: { ca: fs.readFileSync(ca) }
  })
  for (const url of urls) {
    const { statusCode, body } = await request(url, { dispatcher })
    process.stdout.write(statusCode === 200 ? await body.text() : `status ${statusCode}\n`)
  }
  await dispatcher.close()
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error)
  process.exitCode = 1
})
