//! [`run_blocking`]: keeps slow work off the threads that serve connections.

use std::sync::Arc;

use crate::serve::app_state::AppState;
use crate::serve::error::ApiError;

/// Runs slow work on a thread that may block.
pub(super) async fn run_blocking<T: Send + 'static>(
    app: &Arc<AppState>,
    work: impl FnOnce(&AppState) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let app = Arc::clone(app);
    tokio::task::spawn_blocking(move || work(&app))
        .await
        .unwrap_or_else(|_| Err(ApiError::internal("the request handler has panicked")))
}
