//! What the API reference shows beside `GET /api/v1/upscales/{id}`.

use std::env;

use upscale_client::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::new(&env::var("UPSCALE_API")?, &env::var("UPSCALE_API_KEY")?)?;
    let task = client
        .upscales()
        .wait("ups_3k9v1c7m5x8q2w4e6r0t1y3n5p")
        .await?;
    client.upscales().download_to(&task, "photo-2x.png").await?;
    Ok(())
}
