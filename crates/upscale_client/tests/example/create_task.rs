//! What the API reference shows beside `POST /api/v1/upscales`.

use std::env;

use upscale_client::{Client, IdempotencyKey, Order};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::new(&env::var("UPSCALE_API")?, &env::var("UPSCALE_API_KEY")?)?;
    let order = Order::new("https://images.example.com/photo.jpg").scale(2);
    let key = IdempotencyKey::parse("picture-0001")?;
    let created = client.upscales().create(&order, &key).await?;
    eprintln!("{}", created.task.id());
    Ok(())
}
