//! Accepts connections: `axum::serve` sets no timeouts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

/// Time limit for the headers of a request, and for an idle connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for a client to read what was sent.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of the headers of a request in bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;
/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 1024;

/// The address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A host and a port; port 0 picks a free one.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// The client's address, by which requests are queued fairly; all clients of a Unix socket are one.
#[derive(Debug, Clone)]
pub(super) struct Client(pub(super) String);

/// A bound socket.
pub(in crate::serve) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket, removed when the listener is dropped.
pub(in crate::serve) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    pub(in crate::serve) async fn bind(address: &Address) -> std::io::Result<Self> {
        match address {
            Address::Tcp(host, port) => Ok(Self::Tcp(TcpListener::bind((host.as_str(), *port)).await?)),
            Address::Unix(path) => {
                remove_stale(path).await?;
                Ok(Self::Unix(UnixListener::bind(path)?, SocketFile(path.clone())))
            }
        }
    }

    /// The URL at which it listens.
    pub(in crate::serve) fn url(&self) -> std::io::Result<String> {
        match self {
            Self::Tcp(listener) => Ok(format!("http://{}", listener.local_addr()?)),
            Self::Unix(_, SocketFile(path)) => Ok(format!("unix:{}", path.display())),
        }
    }

    async fn accept(&self) -> std::io::Result<(Box<dyn Duplex>, Client)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Events are small and must not be delayed.
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), Client(peer.ip().to_string())))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), Client("unix".to_owned())))
            }
        }
    }

    /// Accepts connections until dropped.
    pub(in crate::serve) async fn serve(&self, router: Router, graceful: &GracefulShutdown) {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let (stream, client) = match self.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // File descriptors may be exhausted, or the client gone: both pass.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(WRITE_TIMEOUT));
            let service = TowerToHyperService::new(router.clone().layer(Extension(client)));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .max_headers(MAX_HEADERS)
                .max_buf_size(MAX_HEADER_BYTES)
                .serve_connection(TokioIo::new(Box::pin(stream)), service);
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "connection closed");
                }
                drop(permit);
            });
        }
    }
}

/// Removes a socket on which no process listens any more, and nothing else.
async fn remove_stale(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    let is_socket = path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket && tokio::net::UnixStream::connect(path).await.is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// A TCP or Unix stream.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}
