//! The comparison of a task in the browser: opens at 100 % where the change is, zooms, moves, by mouse, finger and key, on
//! a wide screen and on a phone.

use fantoccini::{Client, Locator};
use serde_json::{Value, json};

use super::{
    chromium::{devtools, photograph, screenshot},
    find, run, until,
};

/// Box of the stage, line and knob in the window; zoom in percent; where the result lies; the line's share.
const STATE: &str = "const root = document.querySelector('[data-compare]');
     const box = (css) => { const it = root.querySelector(css).getBoundingClientRect(); return [it.left, it.top, it.width, it.height]; };
     return { zoom: Number(root.dataset.zoom), mode: root.dataset.mode, line: Number(root.querySelector('.knob').ariaValueNow),
         stage: box('.stage'), root: [root.offsetWidth, root.offsetHeight], window: [innerWidth, innerHeight], rule: box('.rule'), knob: box('.knob'), result: box('.stage > img'),
         source: root.querySelector('.over img').getBoundingClientRect().left,
         map: !root.querySelector('.map').hidden, full: document.fullscreenElement === root };";

const LOADED: &str =
    "return [...document.querySelectorAll('[data-compare] img')].every(i => i.complete)";

struct State(Value);

impl State {
    /// As painted: right after a change of size the script's own layout can be ahead of the page's observer.
    async fn of(browser: &Client) -> Self {
        let painted = "return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";
        assert_eq!(run(browser, painted).await, json!(true));
        Self(run(browser, STATE).await)
    }

    fn number(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap()
    }

    fn side(&self, name: &str, at: usize) -> f64 {
        self.0[name][at].as_f64().unwrap()
    }

    /// Of the stage, in the window.
    fn middle(&self) -> (f64, f64) {
        let at = |start: usize| self.side("stage", start) + self.side("stage", start + 2) / 2.0;
        (at(0), at(1))
    }

    /// Both pictures lie over each other, and the knob's middle is on the line.
    fn check(&self, what: &str) {
        let apart = (self.number("source") - self.side("result", 0)).abs();
        assert!(apart < 0.6, "{what}: the pictures are {apart} apart");
        let rule = self.side("rule", 0) + self.side("rule", 2) / 2.0;
        let knob = self.side("knob", 0) + self.side("knob", 2) / 2.0;
        assert!(
            (rule - knob).abs() < 0.6,
            "{what}: line {rule}, knob {knob}"
        );
        let meant = self.side("stage", 0) + self.side("stage", 2) * self.number("line") / 100.0;
        let room = self.side("stage", 2) / 100.0 + 1.0;
        assert!(
            (rule - meant).abs() <= room,
            "{what}: line {rule}, said {meant}"
        );
    }
}

/// The stage into the window.
async fn bring(browser: &Client) {
    let bring =
        "document.querySelector('.stage').scrollIntoView({ behavior: 'instant', block: 'center' })";
    run(browser, bring).await;
}

async fn mouse(browser: &Client, kind: &str, (x, y): (f64, f64), more: Value) {
    let mut event = json!({ "type": kind, "x": x, "y": y });
    for (name, value) in more.as_object().unwrap() {
        event[name] = value.clone();
    }
    devtools(browser, "Input.dispatchMouseEvent", event).await;
}

async fn drag(browser: &Client, from: (f64, f64), to: (f64, f64)) {
    let pressed = json!({ "button": "left", "buttons": 1, "clickCount": 1 });
    mouse(browser, "mousePressed", from, pressed.clone()).await;
    let half = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
    mouse(browser, "mouseMoved", half, json!({ "buttons": 1 })).await;
    mouse(browser, "mouseMoved", to, json!({ "buttons": 1 })).await;
    let released = json!({ "button": "left", "buttons": 0, "clickCount": 1 });
    mouse(browser, "mouseReleased", to, released).await;
}

async fn touch(browser: &Client, kind: &str, points: &[(f64, f64)]) {
    let points = points.iter().enumerate();
    let points: Vec<Value> = points
        .map(|(id, (x, y))| json!({ "x": x, "y": y, "id": id }))
        .collect();
    let event = json!({ "type": kind, "touchPoints": points });
    devtools(browser, "Input.dispatchTouchEvent", event).await;
}

async fn press(browser: &Client, keys: &str) {
    let knob = browser.find(Locator::Css(".knob")).await.unwrap();
    knob.send_keys(keys).await.unwrap();
}

/// The task's page is open, its result larger than the stage.
pub(crate) async fn check_slider(browser: &Client) {
    // The script begins before its pictures are there.
    until(browser, "the pictures", LOADED).await;
    let sizes = "return [...document.querySelectorAll('[data-compare] figure img, .stage > img, .over img')].map(i => i.naturalWidth)";
    let sizes = run(browser, sizes).await;
    assert_eq!(sizes, json!([1440, 720]), "result, then source");
    bring(browser).await;
    let opened = State::of(browser).await;
    opened.check("opened");
    assert_eq!(opened.number("zoom"), 100.0);
    assert_eq!(opened.side("result", 2), 1440.0, "a pixel for a pixel");
    assert_eq!(
        (&opened.0["mode"], &opened.0["map"]),
        (&json!("bicubic"), &json!(true))
    );
    check_focus_is_seen(browser, &opened).await;
    check_mouse(browser).await;
    check_keys(browser).await;
    check_modes(browser).await;
    check_phone(browser).await;
}

/// Where the change is lies in the stage.
async fn check_focus_is_seen(browser: &Client, state: &State) {
    let focus = "const it = document.querySelector('[data-compare]').dataset; return [Number(it.focusX), Number(it.focusY)]";
    let focus = run(browser, focus).await;
    for side in [0, 1] {
        let share = focus[side].as_f64().unwrap() / 1_000.0;
        let at = state.side("result", side) + share * state.side("result", side + 2);
        let (start, length) = (state.side("stage", side), state.side("stage", side + 2));
        assert!(
            at >= start && at <= start + length,
            "{focus}: {at} of {start} + {length}"
        );
    }
}

async fn check_mouse(browser: &Client) {
    let before = State::of(browser).await;
    let (x, y) = before.middle();
    // The point under the pointer stays where it is.
    let at = (x + 150.0, y - 60.0);
    let share = |state: &State| (at.0 - state.side("result", 0)) / state.side("result", 2);
    mouse(
        browser,
        "mouseWheel",
        at,
        json!({ "deltaX": 0, "deltaY": -240 }),
    )
    .await;
    let zoomed = State::of(browser).await;
    zoomed.check("zoomed");
    assert!(zoomed.number("zoom") > 130.0, "{}", zoomed.0);
    assert!(
        (share(&zoomed) - share(&before)).abs() < 0.002,
        "{} {}",
        zoomed.0,
        before.0
    );

    // Away from the line the picture moves, both of them; the line stays.
    drag(browser, at, (at.0 - 70.0, at.1 + 30.0)).await;
    let moved = State::of(browser).await;
    moved.check("moved");
    let across = moved.side("result", 0) - zoomed.side("result", 0);
    assert!((across + 70.0).abs() < 2.0, "moved by {across}");
    assert_eq!(moved.number("line"), 50.0);

    // On the line, at its foot, far from the knob, the line moves and the picture stays.
    let foot = (x, before.side("stage", 1) + before.side("stage", 3) - 15.0);
    drag(browser, foot, (x + 200.0, foot.1 - 40.0)).await;
    let slid = State::of(browser).await;
    slid.check("slid");
    assert!(slid.number("line") > 60.0, "{}", slid.0);
    assert_eq!(slid.side("result", 0), moved.side("result", 0));

    // A click brings the line.
    drag(browser, (x - 220.0, y), (x - 220.0, y)).await;
    let brought = State::of(browser).await;
    brought.check("brought");
    let line = brought.side("rule", 0) + 1.0;
    assert!((line - (x - 220.0)).abs() < 1.5, "the line is at {line}");
}

async fn check_keys(browser: &Client) {
    let line = async || State::of(browser).await.number("line");
    press(browser, "\u{e011}").await;
    assert_eq!(line().await, 0.0, "Home");
    press(browser, "\u{e014}\u{e014}\u{e014}").await;
    assert_eq!(line().await, 3.0, "three times right");
    press(browser, "\u{e008}\u{e014}\u{e014}").await;
    assert_eq!(line().await, 23.0, "twice right with Shift");
    press(browser, "\u{e012}").await;
    assert_eq!(line().await, 22.0, "left");
    press(browser, "0").await;
    let fit = State::of(browser).await;
    assert!(
        fit.side("result", 3) <= fit.side("stage", 3) + 1.0,
        "{}",
        fit.0
    );
    assert_eq!(fit.0["map"], json!(false), "all of it is seen");
    press(browser, "1").await;
    assert_eq!(State::of(browser).await.number("zoom"), 100.0);

    let before = State::of(browser).await;
    press(browser, "f").await;
    let is_full = |now: &State| {
        let covers = |side| (now.side("root", side) - now.side("window", side)).abs() < 1.0;
        now.0["full"] == json!(true) && covers(0) && covers(1)
    };
    wait_until(browser, "full screen", is_full).await;
    press(browser, "f").await;
    let is_back = |now: &State| {
        now.0["full"] == json!(false)
            && now.side("stage", 2) == before.side("stage", 2)
            && now.side("stage", 3) == before.side("stage", 3)
    };
    wait_until(browser, "back", is_back).await;
}

/// The browser leaves and fills the screen in steps of its own: the document says so first, the sizes follow.
async fn wait_until(browser: &Client, what: &str, is_so: impl Fn(&State) -> bool) {
    for _ in 0..200 {
        let state = State::of(browser).await;
        if is_so(&state) {
            return state.check(what);
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!(
        "{what}: not after 200 looks: {}",
        State::of(browser).await.0
    );
}

async fn check_modes(browser: &Client) {
    for (mode, rendering, rule) in [
        ("source", "pixelated", "block"),
        ("ours", "auto", "none"),
        ("bicubic", "auto", "block"),
    ] {
        let button = format!("[data-mode={mode}].tool");
        let button = browser.find(Locator::Css(&button)).await.unwrap();
        button.click().await.unwrap();
        let seen = run(
            browser,
            "const style = (css) => getComputedStyle(document.querySelector(css));
             return [style('.over img').imageRendering, style('.rule').display]",
        )
        .await;
        assert_eq!(seen, json!([rendering, rule]), "{mode}");
    }
    screenshot(browser, "slider-desk").await;
}

/// A window of 390 pixels at two dots a pixel, and fingers.
async fn check_phone(browser: &Client) {
    let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
    devtools(browser, "Emulation.setDeviceMetricsOverride", phone).await;
    let fingers = json!({ "enabled": true, "maxTouchPoints": 2 });
    devtools(browser, "Emulation.setTouchEmulationEnabled", fingers).await;
    browser.refresh().await.unwrap();
    find(browser, ".sliding .knob").await;
    until(browser, "the pictures", LOADED).await;
    bring(browser).await;
    let opened = State::of(browser).await;
    opened.check("on a phone");
    assert_eq!(opened.number("zoom"), 100.0);
    assert_eq!(opened.side("result", 2), 720.0, "a pixel for a dot");
    let (x, y) = opened.middle();
    touch(browser, "touchStart", &[(x - 40.0, y), (x + 40.0, y)]).await;
    touch(browser, "touchMove", &[(x - 60.0, y), (x + 60.0, y)]).await;
    touch(browser, "touchMove", &[(x - 100.0, y), (x + 100.0, y)]).await;
    touch(browser, "touchEnd", &[]).await;
    let pinched = State::of(browser).await;
    pinched.check("pinched");
    let zoom = pinched.number("zoom");
    assert!(
        (230.0..=270.0).contains(&zoom),
        "fingers two and a half times as far apart: {zoom}"
    );

    touch(browser, "touchStart", &[(x + 90.0, y - 50.0)]).await;
    touch(browser, "touchMove", &[(x + 60.0, y - 50.0)]).await;
    touch(browser, "touchMove", &[(x + 30.0, y - 50.0)]).await;
    touch(browser, "touchEnd", &[]).await;
    let moved = State::of(browser).await;
    let across = moved.side("result", 0) - pinched.side("result", 0);
    assert!(
        (across + 60.0).abs() < 2.0,
        "one finger moved it by {across}"
    );

    touch(browser, "touchStart", &[(x, y + 60.0)]).await;
    touch(browser, "touchMove", &[(x - 50.0, y + 60.0)]).await;
    touch(browser, "touchMove", &[(x - 100.0, y + 60.0)]).await;
    touch(browser, "touchEnd", &[]).await;
    let slid = State::of(browser).await;
    slid.check("slid by a finger");
    assert!(slid.number("line") < 30.0, "{}", slid.0);
    screenshot(browser, "slider-phone").await;
    devtools(browser, "Emulation.clearDeviceMetricsOverride", json!({})).await;
    let none = json!({ "enabled": false });
    devtools(browser, "Emulation.setTouchEmulationEnabled", none).await;
    browser.refresh().await.unwrap();
    find(browser, ".sliding .knob").await;
    photograph(browser, "playground-result").await;
}
