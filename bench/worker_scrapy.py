"""worker_scrapy.py - what `work fetch` does, as a spider: pages through proxies in turn, a line of JSON for each.

usage: worker_scrapy.py PAGES CONCURRENCY URL OUTPUT PROXY...

URL ends in what the number of the page is put behind. Prints the seconds and the microseconds of CPU from the spider's
beginning to its end, without the start of the interpreter, and how many pages came."""

import itertools
import sys
import time

import scrapy
from scrapy.crawler import CrawlerProcess

PAGES, CONCURRENCY, URL, OUTPUT = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
PROXIES = sys.argv[5:]
SETTINGS = {
    "CONCURRENT_REQUESTS": CONCURRENCY,
    "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
    "COOKIES_ENABLED": False,
    "FEEDS": {OUTPUT: {"format": "jsonlines"}},
    "LOG_LEVEL": "ERROR",
    "REQUEST_FINGERPRINTER_IMPLEMENTATION": "2.7",
    "TELNETCONSOLE_ENABLED": False,
}


class Pages(scrapy.Spider):
    name = "pages"
    count = 0

    def start_requests(self):
        self.began, self.began_cpu = time.monotonic(), time.process_time()
        for number, proxy in zip(range(PAGES), itertools.cycle(PROXIES)):
            yield scrapy.Request(f"{URL}{number}", meta={"proxy": "http://" + proxy}, dont_filter=True)

    def parse(self, response):
        self.count += 1
        yield {"url": response.url, "status": response.status, "headers": response.headers.to_unicode_dict(),
               "member": response.meta["proxy"], "body": response.text}

    def closed(self, reason):
        print(time.monotonic() - self.began, (time.process_time() - self.began_cpu) * 1e6, self.count)


process = CrawlerProcess(SETTINGS)
process.crawl(Pages)
process.start()
