/** One account at one service. */
import { Http } from "./http.js";
import { Upscales } from "./upscales.js";
/** The API of one service with one account's key. */
export class Upscale {
    /** The tasks of this account: create, retrieve, wait, run, download. */
    upscales;
    constructor(options = {}) {
        const baseUrl = options.baseUrl ?? process.env["UPSCALE_API"] ?? "";
        const apiKey = options.apiKey ?? process.env["UPSCALE_API_KEY"] ?? "";
        const base = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
        if (base === undefined || !["http:", "https:"].includes(base.protocol)) {
            const hint = baseUrl === "" ? "; give baseUrl or set UPSCALE_API" : "";
            throw new TypeError(`${JSON.stringify(baseUrl)} is no address such as https://api.example.com${hint}`);
        }
        if (apiKey === "")
            throw new TypeError("there is no API key; give apiKey or set UPSCALE_API_KEY");
        if (!/^[!-~]+$/.test(apiKey))
            throw new TypeError("an API key has visible ASCII characters only");
        const limits = {
            timeout: options.timeout ?? 300,
            maxRetries: options.maxRetries ?? 10,
            requestTimeout: options.requestTimeout ?? 30,
        };
        this.upscales = new Upscales(new Http(base.href.replace(/\/+$/, ""), apiKey, options.fetch ?? fetch), limits);
    }
}
