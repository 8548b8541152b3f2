//! The playground: an order without a program. It is created by the API's own verb, so its limits, its price and its
//! idempotency are the API's; the form carries the key, so that a form sent twice is one task.

use std::sync::Arc;

use askama::Template;
use axum::{
    Extension,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use upscale_core::{
    Credits, IdempotencyKey, InvalidRequest, NewTask, Parameters, SAMPLES, Sample, Scale,
    SourceUrl, limits, random_token,
};

use super::{
    error::ConsoleError,
    form::{Fields, SignedForm},
    page::{Layout, Sources, show},
    session::SignedIn,
    snippets::{Snippet, snippets},
    state::ConsoleState,
    task_view::TaskView,
    tasks::find,
};
use crate::{
    create_upscale::{count_request, order},
    error::ApiError,
    pages::query::{PageQuery, read},
    request_context::RequestContext,
};

/// Which task, at which other scale it is to be ordered again, or which sample.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Shown {
    task: String,
    #[serde(deserialize_with = "read")]
    scale: Option<Scale>,
    sample: String,
}

/// The picture that would be ordered.
struct Preview {
    /// Where the browser finds it.
    url: String,
    /// Known of a sample before it is loaded.
    size: Option<(u32, u32)>,
    /// Whose server is asked; none for a sample.
    host: Option<String>,
}

#[derive(Template)]
#[template(path = "console/playground.html")]
struct PlaygroundPage {
    layout: Layout,
    available: Credits,
    price: Credits,
    is_open: bool,
    idempotency_key: String,
    url: String,
    /// The parameters as the form shows them, by the API's names.
    chosen: Fields,
    url_problem: Option<String>,
    scale_problem: Option<String>,
    problem: Option<String>,
    view: Option<TaskView>,
    snippets: [Snippet; 4],
    /// The size caps of each scale: plain, and with faces.
    caps: [Caps; 2],
    samples: [Sample; 2],
    preview: Option<Preview>,
}

/// The largest source at one scale, in pixels and in megapixels.
struct Caps {
    scale: Scale,
    plain_pixels: u64,
    plain: String,
    faces_pixels: u64,
    faces: String,
}

/// `GET /playground`, with `?task=` what came of the last order.
pub(crate) async fn playground(
    State(state): State<ConsoleState>,
    who: SignedIn,
    PageQuery(shown): PageQuery<Shown>,
) -> Result<Response, ConsoleError> {
    let mut page = PlaygroundPage::new(&state, &who, &Fields::default()).await?;
    if let Some(sample) = Sample::named(&shown.sample) {
        page.url = sample.url();
    }
    let mut sources = Sources::default();
    if !shown.task.is_empty() {
        let record = find(&state, &who, &shown.task).await?;
        page.url = record.source_url.as_str().to_owned();
        let ordered = record.task.parameters;
        let scale = shown.scale.unwrap_or(ordered.scale);
        page.chosen = Fields::of(Parameters { scale, ..ordered }.fields());
        if scale == ordered.scale {
            let view = TaskView::of(&state, &record).await?;
            sources = view.sources(&state).await?;
            page.view = Some(view);
        }
    }
    if page.view.is_none() {
        sources = page.show_preview();
    }
    let mut response = show(StatusCode::OK, &page);
    sources.allow(&mut response);
    Ok(response)
}

/// `POST /playground/preview`: the picture that would be ordered, loaded by the browser, before anything is. A form, not
/// an address: image URLs may hold their owners' secrets, and addresses are logged.
pub(crate) async fn preview(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let mut page = PlaygroundPage::new(&state, &form.who, &form.fields).await?;
    page.url_problem = SourceUrl::parse(page.url.trim()).err().map(in_form_words);
    let sources = page.show_preview();
    let status = match page.url_problem {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let mut response = show(status, &page);
    sources.allow(&mut response);
    Ok(response)
}

/// What is wrong with a field, by the name that the form gives it.
fn in_form_words(error: InvalidRequest) -> String {
    match error {
        InvalidRequest::ImageUrl(reason) => format!("This image URL cannot be used: {reason}."),
        error => error.to_string(),
    }
}

/// `POST /playground`.
pub(crate) async fn create(
    State(state): State<ConsoleState>,
    Extension(context): Extension<Arc<RequestContext>>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let mut page = PlaygroundPage::new(&state, &form.who, &form.fields).await?;
    let url = SourceUrl::parse(page.url.trim());
    let parameters = chosen_parameters(&form.fields);
    page.url_problem = url.as_ref().err().cloned().map(in_form_words);
    match &parameters {
        Ok(_) => {}
        Err(InvalidRequest::Scale) => page.scale_problem = Some("Choose 2x or 4x.".to_owned()),
        Err(error) => page.problem = Some(error.to_string()),
    }
    let (Ok(source_url), Ok(parameters)) = (url, parameters) else {
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let task = NewTask {
        source_url,
        parameters,
    };
    match place(&state, &context, &form, &page, &task).await {
        Ok(id) => Ok(Redirect::to(&format!("/playground?task={id}")).into_response()),
        Err(error) => Ok(refused(&error, page)),
    }
}

/// The form's values are JSON texts under the API's names; a box that is not ticked is not sent.
fn chosen_parameters(typed: &Fields) -> Result<Parameters, InvalidRequest> {
    Parameters::parse(|name| Some(typed.get(name)).filter(|text| !text.is_empty()))
}

/// As the API does it: counted in the minute's window, then one transaction.
async fn place(
    state: &ConsoleState,
    context: &RequestContext,
    form: &SignedForm,
    page: &PlaygroundPage,
    task: &NewTask,
) -> Result<String, ApiError> {
    if !page.is_open {
        return Err(ApiError::ApiAccessRequired);
    }
    let account = &form.who.session.user.account_id;
    count_request(&state.api, context, account).await?;
    let key = IdempotencyKey::parse(form.fields.get("idempotency_key").as_bytes())?;
    let (task, _) = order(&state.api, context, account, &key, task).await?;
    Ok(task.id.to_string())
}

/// What was typed stays; a conflict means that the form was sent before with something else, so it gets a new key.
fn refused(error: &ApiError, mut page: PlaygroundPage) -> Response {
    page.problem = Some(match error {
        ApiError::IdempotencyConflict => {
            "This form ordered another image before. Submit it again to order this one."
                .to_owned()
        }
        ApiError::OutcomeUnknown { .. } => {
            "The outcome is unknown: the database did not answer. Submit this form again to find out; an image is never charged twice."
                .to_owned()
        }
        error => error.to_string(),
    });
    let (status, _, _) = error.row();
    let mut response = show(status, &page);
    if let Some(seconds) = error.retry_after_seconds() {
        let wait = HeaderValue::from(seconds);
        response.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    response
}

impl PlaygroundPage {
    /// Shows the picture of the typed URL, where it is one; what the page must be allowed to load for it.
    fn show_preview(&mut self) -> Sources {
        let Ok(source) = SourceUrl::parse(self.url.trim()) else {
            return Sources::default();
        };
        let sample = Sample::of(&source);
        let host = source.url().host_str().unwrap_or_default().to_owned();
        self.preview = Some(match sample {
            Some(sample) => Preview {
                url: format!("/samples/{}", sample.file_name),
                size: Some(sample.size),
                host: None,
            },
            None => Preview {
                url: source.as_str().to_owned(),
                size: None,
                host: Some(host.clone()),
            },
        });
        let pictures = match sample {
            Some(_) => Vec::new(),
            None => vec![format!("https://{host}")],
        };
        Sources {
            pictures,
            ..Sources::default()
        }
    }

    async fn new(
        state: &ConsoleState,
        who: &SignedIn,
        typed: &Fields,
    ) -> Result<Self, ConsoleError> {
        let account = &who.session.user.account_id;
        let standing = state.api.store.accounts().find(account).await?;
        let standing = standing.ok_or(ConsoleError::NotFound)?;
        let chosen = match chosen_parameters(typed) {
            Ok(parameters) => Fields::of(parameters.fields()),
            Err(_) => typed.clone(),
        };
        Ok(Self {
            layout: Layout::new(&who.visitor, "/playground", "Playground"),
            available: standing.available,
            price: state.api.store.options().price,
            is_open: standing.activated_at.is_some(),
            idempotency_key: format!("console-{}", random_token()?),
            url: typed.get("image_url").to_owned(),
            chosen,
            url_problem: None,
            scale_problem: None,
            problem: None,
            view: None,
            // A sample: the lines work as they stand.
            snippets: snippets(
                &state.api.base_url,
                &SAMPLES[0].url(),
                Parameters::default(),
            ),
            caps: Scale::ALL.map(Caps::of),
            samples: SAMPLES,
            preview: None,
        })
    }
}

impl Caps {
    fn of(scale: Scale) -> Self {
        let plain = Parameters::at(scale);
        let faces = Parameters {
            face_enhance: true,
            ..plain
        };
        let [plain_pixels, faces_pixels] = [plain, faces].map(limits::source_pixels_max);
        Self {
            scale,
            plain_pixels,
            plain: megapixels(plain_pixels),
            faces_pixels,
            faces: megapixels(faces_pixels),
        }
    }
}

fn megapixels(pixels: u64) -> String {
    let hundredths = pixels * 100 / limits::MEGAPIXEL;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
