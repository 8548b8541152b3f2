//! What the customers' and the operators' console share, all of it: the layout and its headers, cookies and forms,
//! stylesheet and script, answers that are no page, lists over several pages, what addresses ask for, and how rows and values are written for people. Of the templates it is
//! `console/layout.html`, `console/error.html` and what stands in `pages/`.

pub(crate) mod assets;
pub(crate) mod chart;
pub(crate) mod cookies;
pub(crate) mod error;
pub(crate) mod form;
pub(crate) mod listing;
pub(crate) mod page;
pub(crate) mod query;
pub(crate) mod rows;
pub(crate) mod shown;
